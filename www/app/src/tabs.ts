/** What the address's fragment says: `#bench`, or `#bench=…` with something for the tab. */
export function fragment(): { tab: string; rest: string | undefined } {
  const [tab = '', ...rest] = location.hash.slice(1).split('=');
  return { tab, rest: rest.length > 0 ? rest.join('=') : undefined };
}

/** Has the tabs of a list show their panels, by the pointer and by the arrow keys; the fragment names the one that is open. */
export function startTabs(list: HTMLElement): void {
  const tabs = [...list.querySelectorAll<HTMLElement>('[role=tab]')];
  const panelOf = (tab: HTMLElement) => document.getElementById(tab.getAttribute('aria-controls') ?? '');

  function open(tab: HTMLElement): void {
    for (const other of tabs) {
      const chosen = other === tab;
      other.setAttribute('aria-selected', String(chosen));
      other.tabIndex = chosen ? 0 : -1;
      const panel = panelOf(other);
      if (panel) panel.hidden = !chosen;
    }
  }

  function choose(tab: HTMLElement): void {
    open(tab);
    tab.focus();
    history.replaceState(null, '', `#${tab.dataset['tab']}`);
  }

  function byFragment(): void {
    const named = tabs.find((tab) => tab.dataset['tab'] === fragment().tab) ?? tabs[0];
    if (named) open(named);
  }

  for (const [i, tab] of tabs.entries()) {
    tab.addEventListener('click', () => choose(tab));
    tab.addEventListener('keydown', ({ key }) => {
      const places: Record<string, number> = { ArrowRight: i + 1, ArrowLeft: i - 1, Home: 0, End: tabs.length - 1 };
      const next = places[key];
      if (next !== undefined) choose(tabs.at(next % tabs.length) as HTMLElement);
    });
  }
  addEventListener('hashchange', byFragment);
  byFragment();
}
