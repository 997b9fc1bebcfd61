import { el } from '../dom.js';

const ZOOM = { least: 0.05, most: 2 };
/** Letters of a smaller drawing cannot be read: it is as wide as its box at first, and scrolls. */
const READABLE = 0.4;

/** A drawing in a box: it fits in there at first, zooms, and is dragged. */
export function viewer(drawing: SVGSVGElement, label: string): HTMLElement {
  const { width, height } = drawing.viewBox.baseVal;
  const scroll = el('div', { class: 'scroll graph', tabindex: 0, role: 'region', 'aria-label': label }, drawing);
  const zoom = el('input', { type: 'range', min: ZOOM.least, max: ZOOM.most, step: 'any', 'aria-label': 'Zoom' });

  function resize(scale: number): void {
    zoom.value = String(scale);
    const middle = [
      (scroll.scrollLeft + scroll.clientWidth / 2) / (scroll.scrollWidth || 1),
      (scroll.scrollTop + scroll.clientHeight / 2) / (scroll.scrollHeight || 1),
    ] as const;
    drawing.setAttribute('width', String(width * zoom.valueAsNumber));
    drawing.setAttribute('height', String(height * zoom.valueAsNumber));
    scroll.scrollLeft = middle[0] * scroll.scrollWidth - scroll.clientWidth / 2;
    scroll.scrollTop = middle[1] * scroll.scrollHeight - scroll.clientHeight / 2;
  }

  /** The scale at which all of the drawing is in the box. */
  function whole(): number {
    const most = Number.parseFloat(getComputedStyle(scroll).maxHeight) || 520;
    return Math.min(1, (scroll.clientWidth - 2) / width, (most - 4) / height);
  }

  const fit = () => resize(whole());
  zoom.addEventListener('input', () => resize(zoom.valueAsNumber));
  // The box has no size while its tab is closed.
  const observer = new ResizeObserver(() => {
    if (scroll.clientWidth === 0) return;
    observer.disconnect();
    resize(whole() >= READABLE ? whole() : Math.min(1, Math.max(READABLE, (scroll.clientWidth - 2) / width)));
    scroll.scrollTop = 0;
    scroll.scrollLeft = (scroll.scrollWidth - scroll.clientWidth) / 2;
  });
  observer.observe(scroll);

  scroll.addEventListener(
    'wheel',
    (event) => {
      if (!event.ctrlKey) return;
      event.preventDefault();
      resize(zoom.valueAsNumber * Math.exp(-event.deltaY / 300));
    },
    { passive: false },
  );
  scroll.addEventListener('keydown', ({ key }) => {
    if (key === '+') resize(zoom.valueAsNumber * 1.25);
    else if (key === '-') resize(zoom.valueAsNumber / 1.25);
    else if (key === '0') fit();
  });
  drag(scroll);
  const button = el('button', { type: 'button', class: 'quiet', 'data-testid': 'graph-fit', click: fit }, 'Fit');
  return el('div', { class: 'viewer' }, scroll, el('div', { class: 'zoom' }, button, el('label', {}, 'Zoom ', zoom)));
}

/** Moves what a box shows with the pointer. Fingers scroll it as they do everything. */
function drag(scroll: HTMLElement): void {
  let last: { x: number; y: number } | undefined;
  scroll.addEventListener('pointerdown', ({ pointerType, button, clientX: x, clientY: y }) => {
    if (pointerType === 'mouse' && button === 0) last = { x, y };
  });
  addEventListener('pointermove', ({ clientX: x, clientY: y }) => {
    if (!last) return;
    scroll.scrollLeft -= x - last.x;
    scroll.scrollTop -= y - last.y;
    last = { x, y };
  });
  addEventListener('pointerup', () => {
    last = undefined;
  });
}
