import type { NodeTime, Report } from 'kilim';
import { el, formatTime } from '../dom.js';
import type { OpenModel, Panel } from '../model.js';
import { readOnnx } from '../onnx/file.js';
import type { OnnxFile } from '../onnx/file.js';
import { boxesOf, scopesOf } from './boxes.js';
import type { Box, Scope } from './boxes.js';
import { details } from './details.js';
import { draw } from './draw.js';
import { layOut } from './layers.js';
import { Heat } from './times.js';
import { viewer } from './viewer.js';

/** Boxes of more than so many are a blur, and slow. */
const LIMIT = 3000;

/** The graph as a picture: nodes coloured by backend or by time, repeated blocks folded, reasons on demand. */
export class GraphView implements Panel {
  readonly element = el('div', { class: 'placement' });
  #open: OpenModel | undefined;
  #report: Report | undefined;
  #scopes: Scope[] = [];
  #heat: Heat | undefined;
  #file: Promise<OnnxFile | null> = Promise.resolve(null);
  #unfolded = new Set<string>();
  #elements = new Map<Box, SVGGElement>();
  #found: Box[] = [];
  #chosen: Box | undefined;
  #search = el('input', {
    type: 'search',
    placeholder: 'Name, operator or value',
    'aria-label': 'Search the graph',
    'data-testid': 'graph-search',
  });
  #status = el('span', { class: 'note', role: 'status', 'data-testid': 'graph-status' });
  #folding = el('input', { type: 'checkbox', checked: true, 'data-testid': 'graph-folding' });
  #byTime = el('input', { type: 'checkbox', disabled: true, 'data-testid': 'graph-heat' });
  #tools: HTMLElement;
  #legend = el('div', { class: 'legend' });
  #blocks = el('div', { class: 'blocks' });
  #detail = el('div', { class: 'detail', 'aria-live': 'polite', 'data-testid': 'node-detail' });

  /** `measure` runs the model once and has `times` told of it. */
  constructor(measure: () => void) {
    this.#search.addEventListener('input', () => this.#mark());
    this.#search.addEventListener('keydown', ({ key, shiftKey }) => {
      if (key === 'Enter') this.#next(shiftKey ? -1 : 1);
    });
    this.#folding.addEventListener('change', () => {
      this.#unfolded.clear();
      this.#draw();
    });
    this.#byTime.addEventListener('change', () => this.#colour());
    this.#tools = el(
      'div',
      { class: 'graph-tools' },
      this.#search,
      this.#status,
      el('label', { class: 'check' }, this.#folding, ' Fold what repeats'),
      el('label', { class: 'check' }, this.#byTime, ' Time as heat'),
      el('button', { type: 'button', 'data-testid': 'graph-measure', click: measure }, 'Measure one run'),
    );
  }

  show(open: OpenModel): void {
    this.#open = open;
    this.#unfolded.clear();
    this.#heat = undefined;
    this.#byTime.disabled = true;
    this.#byTime.checked = false;
    this.#file = readOnnx(open.model).then(
      (file) => file ?? null,
      () => null,
    );
  }

  /** Shows where nodes are by now. */
  report(report: Report): void {
    this.#report = report;
    this.#scopes = scopesOf(report.nodes);
    this.#draw();
  }

  /** Colours the nodes by what they took in a measured run. */
  times(times: readonly NodeTime[]): void {
    this.#heat = new Heat(times);
    this.#byTime.disabled = false;
    this.#byTime.checked = true;
    this.#colour();
    if (this.#chosen) void this.#choose(this.#chosen);
  }

  #draw(): void {
    const report = this.#report;
    if (!report) return;
    this.#elements.clear();
    this.#chosen = undefined;
    const isFolded = (id: string) => this.#folding.checked && !this.#unfolded.has(id);
    const boxes = this.#scopes.map((scope) => boxesOf(scope, isFolded));
    const number = boxes.reduce((sum, { length }) => sum + length, 0);
    if (number === 0 || number > LIMIT) {
      this.element.replaceChildren(el('p', { class: 'note' }, whyNot(report, number)));
      return;
    }
    const crossings = new Map(report.crossings.map((crossing) => [crossing.value, crossing]));
    this.#blocks.replaceChildren(
      ...boxes.map((some, i) => {
        const { element, elements } = draw(
          layOut(some),
          crossings,
          (box) => void this.#choose(box),
          (box) => this.#unfold(box),
        );
        for (const [box, of] of elements) this.#elements.set(box, of);
        const path = this.#scopes[i]?.path ?? [];
        const name = path.length > 0 ? `Inside ${path.join(' / ')}` : 'Placement of the graph';
        return el('div', { class: 'block' }, path.length > 0 && el('h3', {}, name), viewer(element, name));
      }),
    );
    const hint = 'Choose a node, by a click or by Tab and the arrow keys, to see what it is, where it runs and why.';
    this.#detail.replaceChildren(el('p', { class: 'note' }, hint));
    this.element.replaceChildren(this.#tools, this.#legend, el('div', { class: 'placement-body' }, this.#blocks, this.#detail));
    this.#folding.disabled = this.#scopes.every(({ folds }) => folds.length === 0);
    this.#colour();
    this.#mark();
  }

  async #choose(box: Box): Promise<void> {
    const [open, report] = [this.#open, this.#report];
    if (!open || !report) return;
    this.#chosen = box;
    for (const [other, element] of this.#elements) element.classList.toggle('chosen', other === box);
    const show = (file: OnnxFile | null) =>
      this.#detail.replaceChildren(details(box, { report, inputs: open.session.inputs, heat: this.#heat, file }, () => this.#unfold(box)));
    const file = await this.#file;
    if (this.#chosen === box) show(file);
  }

  #unfold({ fold, nodes }: Box): void {
    if (fold === undefined) return;
    this.#unfolded.add(fold);
    this.#draw();
    const first = [...this.#elements].find(([box]) => box.nodes[0] === nodes[0]);
    first?.[1].focus();
  }

  /** Colours boxes by the choice of the legend. */
  #colour(): void {
    const report = this.#report;
    const heat = this.#byTime.checked ? this.#heat : undefined;
    const most = heat ? Math.max(1e-12, ...[...this.#elements.keys()].map((box) => heat.of(box))) : 1;
    this.#blocks.classList.toggle('heat', heat !== undefined);
    for (const [box, element] of this.#elements) {
      // The square root tells small times from none.
      element.style.setProperty('--heat', String(heat ? Math.sqrt(heat.of(box) / most) : 0));
    }
    if (!report) return;
    if (heat) {
      this.#legend.replaceChildren(el('span', {}, '0'), el('i', { class: 'scale' }), el('span', {}, formatTime(most)));
      return;
    }
    const used = [...new Set(report.nodes.map(({ backend }) => backend))];
    this.#legend.replaceChildren(
      ...used.map((id) =>
        el('span', {}, el('i', { class: `swatch ${id}` }), id === 'plan' ? 'plan: computed while planning, and views' : id),
      ),
      ...(report.crossings.length > 0 ? [el('span', {}, el('i', { class: 'swatch crossing' }), 'crosses between backends')] : []),
    );
  }

  /** Marks what fits the search. */
  #mark(): void {
    const wanted = this.#search.value.trim().toLowerCase();
    const fits = ({ nodes }: Box) =>
      nodes.some(({ name, op, outputs }) =>
        [name, op, ...outputs.map((output) => output.name)].some((text) => text.toLowerCase().includes(wanted)),
      );
    this.#found = wanted === '' ? [] : [...this.#elements.keys()].filter(fits);
    const found = new Set(this.#found);
    for (const [box, element] of this.#elements) {
      element.classList.toggle('found', found.has(box));
      element.classList.toggle('dim', wanted !== '' && !found.has(box));
    }
    this.#status.textContent = wanted === '' ? '' : found.size === 0 ? 'nothing fits' : `${found.size} found, Enter goes on`;
  }

  /** Goes to the next box that the search has found. */
  #next(step: 1 | -1): void {
    const chosen = this.#chosen ? this.#found.indexOf(this.#chosen) : -1;
    const next = this.#found.at((chosen + (chosen < 0 && step < 0 ? 0 : step)) % this.#found.length);
    if (!next) return;
    this.#elements.get(next)?.scrollIntoView({ block: 'nearest', inline: 'center' });
    void this.#choose(next);
  }
}

function whyNot({ nodes, unplannedStages }: Report, boxes: number): string {
  if (boxes > LIMIT) return `${nodes.length} nodes are too many to draw.`;
  return unplannedStages ? 'Nodes are placed when the first input has come, since its size decides.' : 'The graph has no nodes.';
}
