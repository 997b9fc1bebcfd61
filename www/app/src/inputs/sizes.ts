import { el } from '../dom.js';

/** Sizes of free dimensions: those of one name are one field of the form everywhere. */
export class FreeSizes {
  #values = new Map<string, number>();
  #inputs = new Map<string, HTMLInputElement[]>();

  field(key: string, label: string, initial: number, onChange: () => void): { element: HTMLElement; value: () => number } {
    const value = this.#values.get(key) ?? initial;
    this.#values.set(key, value);
    const input = el('input', { type: 'number', min: 1, max: 65536, step: 1, value, 'aria-label': `Size of ${label}` });
    const all = this.#inputs.get(key) ?? [];
    this.#inputs.set(key, [...all, input]);
    input.addEventListener('change', () => {
      const size = Math.max(1, Math.round(input.valueAsNumber) || 1);
      this.#values.set(key, size);
      for (const same of this.#inputs.get(key) ?? []) same.value = String(size);
      onChange();
    });
    return { element: el('label', { class: 'dim free' }, el('span', {}, label), input), value: () => this.#values.get(key) ?? initial };
  }
}
