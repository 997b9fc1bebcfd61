import { Template } from '@huggingface/jinja';
import { KilimError } from '../index.js';

/** What somebody says in a conversation. */
export interface Message {
  /** `system`, `user` or `assistant`; a template may know others. */
  role: string;
  content: string;
}

/** The part of `tokenizer_config.json` that templates need. */
export interface TokenizerSettings {
  chat_template?: string | { name: string; template: string }[];
  bos_token?: Special;
  eos_token?: Special;
}

/** A special word: its text, or more about it. */
type Special = string | { content: string } | null;

const textOf = (word: Special | undefined): string => (typeof word === 'string' ? word : (word?.content ?? ''));

/** Makes prompts of conversations, as a folder's chat template says; `file` is that of `chat_template.jinja`. */
export class ChatTemplate {
  readonly #template: Template;
  readonly #words: { bos_token: string; eos_token: string };

  /** @throws KilimError `UNSUPPORTED` where the folder has no template, `INVALID_MODEL` for one that cannot be understood. */
  constructor(file: string | undefined, { chat_template: inside, bos_token, eos_token }: TokenizerSettings) {
    const text = file ?? (Array.isArray(inside) ? inside.find(({ name }) => name === 'default')?.template : inside);
    if (text === undefined || text === null) throw new KilimError('UNSUPPORTED', 'a conversation: the folder has no chat template');
    this.#template = said(() => new Template(text));
    this.#words = { bos_token: textOf(bos_token), eos_token: textOf(eos_token) };
  }

  /**
   * The prompt after which the model speaks. `variables` are further ones that the template reads.
   * @throws KilimError `INVALID_MODEL` where the template fails, or refuses the conversation.
   */
  prompt(messages: readonly Message[], variables: Record<string, unknown> = {}): string {
    return said(() => this.#template.render({ ...this.#words, ...variables, messages, add_generation_prompt: true }));
  }
}

function said<T>(make: () => T): T {
  try {
    return make();
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new KilimError('INVALID_MODEL', `the chat template says: ${reason}`, {}, error);
  }
}
