// Talks to a language model: a folder of the visitor's, or one by its address.
import { KilimError } from 'kilim';
import type { Backend } from 'kilim';
import { loadText } from 'kilim/text';
import type { Conversation, FolderSource, Generated, GenerateOptions, TextModel } from 'kilim/text';
import { byId, el, formatTime } from './dom.js';
import { failure } from './failure.js';
import { summary } from './placement.js';
import { showProgress } from './progress.js';
import { switchTheme } from './theme.js';

const sendButton = byId<HTMLButtonElement>('send');
const sayField = byId<HTMLTextAreaElement>('say');
const plainField = byId<HTMLInputElement>('plain');
const temperatureField = byId<HTMLInputElement>('temperature');

/** What the page talks to. */
let model: TextModel | undefined;
/** `undefined` before its first turn. */
let conversation: Conversation | undefined;
let loading: AbortController | undefined;
let speaking: AbortController | undefined;

function showError(error: unknown): void {
  if (error instanceof KilimError && error.code === 'ABORTED') return;
  byId('error').replaceChildren(failure(error));
}

function backends(): { backends?: Backend[] } {
  const chosen = document.querySelector<HTMLInputElement>('input[name=backends]:checked')?.value ?? 'auto';
  return chosen === 'auto' ? {} : { backends: chosen.split(',') as Backend[] };
}

async function open(label: string, folder: FolderSource): Promise<void> {
  loading?.abort();
  const mine = new AbortController();
  loading = mine;
  byId('error').replaceChildren();
  byId('progress').hidden = false;
  try {
    const { signal } = mine;
    const onProgress: typeof showProgress = (progress) => {
      if (loading === mine) showProgress(progress);
    };
    const opened = await loadText(folder, { ...backends(), signal, onProgress });
    if (loading !== mine) return opened.close();
    speaking?.abort();
    model?.close();
    model = opened;
    byId('model-name').textContent = label;
    temperatureField.value = String(opened.sampling.temperature);
    forget();
    document.body.dataset['state'] = 'ready';
    byId('summary').replaceChildren(summary(opened.session.report));
    sayField.focus();
  } catch (error) {
    if (loading === mine) showError(error);
  } finally {
    if (loading === mine) {
      loading = undefined;
      byId('progress').hidden = true;
    }
  }
}

/** Begins anew. */
function forget(): void {
  speaking?.abort();
  conversation = undefined;
  byId('talk').replaceChildren();
  byId('speed').textContent = '';
}

/** What the last text took. */
function speed({ words, wordsPerSecond, firstWordSeconds, promptWords, keptWords }: Generated): string {
  const rate = wordsPerSecond === undefined ? '' : `${wordsPerSecond.toFixed(1)} words a second, `;
  const kept = keptWords > 0 ? `, ${keptWords} of them known already` : '';
  return `${rate}${words.length} words; the first after ${formatTime(firstWordSeconds)}, behind ${promptWords}${kept}`;
}

const ENDINGS: Partial<Record<Generated['ended'], string>> = {
  maxWords: 'ended: as many words as were asked for',
  context: 'ended: the model cannot look back on more words',
  aborted: 'stopped',
};

async function say(): Promise<void> {
  const current = model;
  const text = sayField.value;
  if (!current || speaking || text.trim() === '') return;
  const mine = new AbortController();
  speaking = mine;
  sendButton.textContent = 'Stop';
  byId('error').replaceChildren();
  const answer = el('li', { class: 'assistant' });
  byId('talk').append(el('li', { class: 'user' }, text), answer);
  const options: GenerateOptions = {
    maxWords: Number(byId<HTMLInputElement>('most').value) || 256,
    temperature: Number(temperatureField.value) || 0,
    seed: Math.floor(Math.random() * 2 ** 32),
    signal: mine.signal,
    onText: (piece) => {
      answer.append(piece);
      answer.scrollIntoView({ block: 'nearest' });
    },
  };
  try {
    sayField.value = '';
    const made = plainField.checked
      ? await current.generate(text, options)
      : await (conversation ??= current.conversation()).say(text, options);
    const note = ENDINGS[made.ended];
    if (note) answer.append(el('span', { class: 'note' }, note));
    byId('speed').textContent = speed(made);
    byId('summary').replaceChildren(summary(current.session.report));
  } catch (error) {
    if (current !== model) return;
    answer.remove();
    byId('talk').lastElementChild?.remove();
    sayField.value ||= text;
    showError(error);
  } finally {
    if (speaking === mine) speaking = undefined;
    sendButton.textContent = 'Send';
  }
}

byId('say-form').addEventListener('submit', (event) => {
  event.preventDefault();
  if (speaking) speaking.abort();
  else void say();
});
sayField.addEventListener('keydown', (event) => {
  if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  void say();
});
byId('forget').addEventListener('click', forget);
byId('cancel').addEventListener('click', () => loading?.abort());
byId('url-form').addEventListener('submit', (event) => {
  event.preventDefault();
  const url = byId<HTMLInputElement>('url').value.trim();
  if (url) void open(url.replace(/\/+$/, '').split('/').pop() || url, url);
});
const folderInput = byId<HTMLInputElement>('folder');
folderInput.addEventListener('change', () => {
  const files = [...(folderInput.files ?? [])];
  const [first] = files;
  if (first) void open(first.webkitRelativePath.split('/')[0] || first.name, files);
  folderInput.value = '';
});
switchTheme();
