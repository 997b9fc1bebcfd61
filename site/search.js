// The search of every page: titles, headings and codes that hold all words.
const input = document.querySelector('#search');
const found = document.querySelector('#found');
const root = new URL(input.dataset.root || './', location.href);

let entries;
const load = () => (entries ??= fetch(new URL('search.json', root)).then((response) => response.json()));

const MOST = 12;

async function show() {
  const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
  const all = words.length > 0 ? await load() : [];
  const holds = ({ page, text }) => words.every((word) => `${page} ${text}`.toLowerCase().includes(word));
  const items = all.filter(holds).slice(0, MOST);
  found.replaceChildren(
    ...items.map(({ address, page, text }) => {
      const link = document.createElement('a');
      link.href = new URL(address, root).href;
      link.textContent = page === text ? page : `${page}: ${text}`;
      const item = document.createElement('li');
      item.append(link);
      return item;
    }),
  );
  if (words.length > 0 && items.length === 0) found.textContent = 'Nothing found';
  found.hidden = words.length === 0;
}

input.addEventListener('input', show);
input.addEventListener('focus', load, { once: true });
addEventListener('keydown', (event) => {
  if (event.key === '/' && !/^(INPUT|TEXTAREA)$/.test(document.activeElement?.tagName)) {
    event.preventDefault();
    input.focus();
  }
  if (event.key === 'Escape') found.hidden = true;
});
// A phone has no room for the list of documents beside the text.
if (matchMedia('(max-width: 800px)').matches) document.querySelector('nav details').open = false;
