// Writes what is said in a recording or into the microphone, with a speech model of the visitor's.
import { record } from 'kilim/sound';
import type { Recording } from 'kilim/sound';
import { loadSpeech } from 'kilim/speech';
import type { Part, Sound, SpeechModel } from 'kilim/speech';
import { byId, el, formatTime } from './dom.js';
import { chooseFolders, showError } from './folders.js';
import { summary } from './summary.js';
import { keepOffline } from './offline/register.js';
import { switchTheme } from './theme.js';

const recordButton = byId<HTMLButtonElement>('record');
const stopButton = byId<HTMLButtonElement>('stop');
const languageField = byId<HTMLSelectElement>('language');
const translateField = byId<HTMLInputElement>('translate');

let model: SpeechModel | undefined;
let listening: AbortController | undefined;
let recording: Recording | undefined;

function opened(speech: SpeechModel): void {
  listening?.abort();
  model = speech;
  const names = new Intl.DisplayNames(undefined, { type: 'language', fallback: 'code' });
  const options = speech.languages.map((code): [string, string] => [code, names.of(code) ?? code]);
  options.sort(([, a], [, b]) => a.localeCompare(b));
  languageField.replaceChildren(el('option', { value: '' }, 'found out'), ...options.map(([value, name]) => el('option', { value }, name)));
  languageField.disabled = options.length === 0;
  translateField.disabled = !speech.decoder.translates;
  byId('parts').replaceChildren();
  byId('speed').textContent = '';
  byId('summary').replaceChildren(summary(speech.decoding.report));
}

/** Minutes and seconds. */
function clock(seconds: number): string {
  const whole = Math.floor(seconds);
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, '0')}`;
}

function show({ start, text }: Part): void {
  const item = el('li', {}, el('span', { class: 'note' }, clock(start)), el('span', {}, text.trim()));
  byId('parts').append(item);
  item.scrollIntoView({ block: 'nearest' });
}

async function listen(sound: Sound): Promise<void> {
  const current = model;
  if (!current || listening) return;
  const mine = new AbortController();
  listening = mine;
  byId('error').replaceChildren();
  byId('parts').replaceChildren();
  byId('speed').textContent = '';
  byId('listening').hidden = false;
  stopButton.hidden = false;
  recordButton.disabled = true;
  byId('listened-text').textContent = 'listening';
  byId<HTMLProgressElement>('listened').removeAttribute('value');
  try {
    const made = await current.transcribe(sound, {
      signal: mine.signal,
      translate: translateField.checked && !translateField.disabled,
      times: current.decoder.hasTimes,
      ...(languageField.value && { language: languageField.value }),
      onPart: (part, seconds) => {
        show(part);
        byId('listened-text').textContent = `${clock(seconds)} done`;
      },
    });
    const spoken = made.language === undefined ? '' : `, language ${made.language}`;
    const rate = made.soundSeconds / made.seconds;
    byId('speed').textContent = `${clock(made.soundSeconds)} in ${formatTime(made.seconds)}, ${rate.toFixed(1)} times as fast${spoken}`;
    if (made.text === '') byId('speed').textContent += ', nothing was said';
    byId('summary').replaceChildren(summary(current.decoding.report));
  } catch (error) {
    if (current === model) showError(error);
  } finally {
    if (listening === mine) listening = undefined;
    byId('listening').hidden = true;
    stopButton.hidden = true;
    recordButton.disabled = false;
  }
}

/** Records until the button is pressed again. */
async function recordOrEnd(): Promise<void> {
  try {
    const ending = recording;
    recording = ending ? undefined : await record();
    recordButton.textContent = recording ? 'End of recording' : 'Record';
    if (ending) await listen(await ending.stop());
  } catch (error) {
    showError(error);
  }
}

recordButton.addEventListener('click', () => void recordOrEnd());
stopButton.addEventListener('click', () => listening?.abort());
const fileInput = byId<HTMLInputElement>('file');
fileInput.addEventListener('change', () => {
  const file = fileInput.files?.[0];
  if (file) void listen(file);
  fileInput.value = '';
});
chooseFolders(loadSpeech, opened);
switchTheme();
void keepOffline();
