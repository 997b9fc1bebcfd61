// Talks to a language model: a folder of the visitor's, or one by its address.
import { loadText } from 'kilim/text';
import type { Conversation, Generated, GenerateOptions, TextModel } from 'kilim/text';
import { byId, el, formatTime } from './dom.js';
import { chooseFolders, showError } from './folders.js';
import { summary } from './summary.js';
import { keepOffline } from './offline/register.js';
import { switchTheme } from './theme.js';

const sendButton = byId<HTMLButtonElement>('send');
const sayField = byId<HTMLTextAreaElement>('say');
const plainField = byId<HTMLInputElement>('plain');
const temperatureField = byId<HTMLInputElement>('temperature');

/** What the page talks to. */
let model: TextModel | undefined;
/** `undefined` before its first turn. */
let conversation: Conversation | undefined;
let speaking: AbortController | undefined;

function opened(text: TextModel): void {
  speaking?.abort();
  model = text;
  temperatureField.value = String(text.sampling.temperature);
  forget();
  byId('summary').replaceChildren(summary(text.session.report));
  sayField.focus();
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
chooseFolders(loadText, opened);
switchTheme();
void keepOffline();
