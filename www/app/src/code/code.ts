import { typesOf } from 'kilim/types';
import { copyButton } from '../copy.js';
import { el } from '../dom.js';
import { failure } from '../failure.js';
import type { OpenModel, Panel } from '../model.js';
import { programOf } from './given.js';
import type { Program } from './given.js';
import { javascript, typesFileOf } from './javascript.js';
import { python } from './python.js';
import { rust } from './rust.js';

/** A file that a language's program is made of. */
interface SourceFile {
  name: string;
  text: string;
}

interface Language {
  label: string;
  files(program: Program, open: OpenModel): SourceFile[];
}

const LANGUAGES: Record<string, Language> = {
  javascript: { label: 'JavaScript', files: (program) => [{ name: 'main.js', text: javascript(program) }] },
  typescript: {
    label: 'TypeScript',
    files: (program, { session }) => {
      const types = typesFileOf(program.file);
      return [
        { name: 'main.ts', text: javascript(program, types) },
        { name: types, text: typesOf(program.file, session) },
      ];
    },
  },
  rust: { label: 'Rust', files: (program) => [{ name: 'main.rs', text: rust(program) }] },
  python: { label: 'Python', files: (program) => [{ name: 'reference.py', text: python(program) }] },
};

/** The program that runs the model with inputs as the form has them, in several languages. */
export class Code implements Panel {
  readonly element = el('div', { class: 'panel' });
  #open: OpenModel | undefined;
  #language = 'javascript';
  #files = el('div', { class: 'panel', 'data-testid': 'code' });

  constructor() {
    const choices = Object.entries(LANGUAGES).map(([key, { label }]) =>
      el(
        'label',
        {},
        el('input', {
          type: 'radio',
          name: 'language',
          value: key,
          checked: key === this.#language,
          'data-testid': `code-${key}`,
          change: () => {
            this.#language = key;
            this.refresh();
          },
        }),
        el('span', {}, label),
      ),
    );
    this.element.append(
      el(
        'section',
        { class: 'card', 'aria-labelledby': 'code-title' },
        el(
          'div',
          { class: 'card-head' },
          el('h2', { id: 'code-title' }, 'Code for this model'),
          el('div', { class: 'segments', role: 'radiogroup', 'aria-label': 'Language' }, ...choices),
        ),
        this.#files,
      ),
    );
  }

  show(open: OpenModel): void {
    this.#open = open;
    this.refresh();
  }

  /** Writes the program anew: sizes and sources of inputs may have changed. */
  refresh(): void {
    const open = this.#open;
    const language = LANGUAGES[this.#language];
    if (!open || !language) return;
    try {
      const files = language.files(programOf(open), open);
      this.#files.replaceChildren(...files.map(block));
    } catch (error) {
      this.#files.replaceChildren(failure(error));
    }
  }
}

function block({ name, text }: SourceFile): HTMLElement {
  return el(
    'figure',
    { class: 'source' },
    el(
      'figcaption',
      {},
      el('code', {}, name),
      copyButton('Copy', () => text),
    ),
    el(
      'pre',
      {
        class: 'raw',
        tabindex: 0,
        'aria-label': name,
        role: 'region',
        'data-testid': `source-of-${name.replace(/^.*\.types\.ts$/, 'types')}`,
      },
      text,
    ),
  );
}
