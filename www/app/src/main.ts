import { KilimError, load } from 'kilim';
import type { Backend, LoadOptions, ModelSource, Progress, Session } from 'kilim';
import digits from '../../../assets/digits.onnx?url';
import { byId, formatBytes, formatTime } from './dom.js';
import { failure } from './failure.js';
import { Inputs } from './inputs.js';
import { Outputs } from './outputs.js';
import { memory } from './memory.js';
import { placement, summary } from './placement.js';
import { Times } from './times.js';

interface Model {
  label: string;
  source: ModelSource;
  externalData: Record<string, Blob>;
}

const DIGITS: Model = { label: 'Handwritten digits', source: new URL(digits, document.baseURI), externalData: {} };

const runButton = byId<HTMLButtonElement>('run');
const profileButton = byId<HTMLButtonElement>('profile');
const runTime = byId('run-time');
const outputs = new Outputs();
const times = new Times();
byId('outputs').append(outputs.element);
byId('times').append(times.element);

let model = DIGITS;
let session: Session | undefined;
let inputs: Inputs | undefined;
let loading: AbortController | undefined;
/** A run is under way; `again` asks for one more when it is done. */
let running = false;
let again = false;

/** What the error on the page is about. */
type Cause = 'model' | 'input' | 'run';
let cause: Cause | undefined;

function showError(error: unknown, of: Cause): void {
  if (error instanceof KilimError && error.code === 'ABORTED') return;
  cause = of;
  byId('error').replaceChildren(failure(error));
}

/** Takes an error away that no longer holds: a run that succeeds says nothing of a picture that cannot be read. */
function clearError(of: Cause): void {
  if (cause === of || of === 'model') byId('error').replaceChildren();
}

const inputError = (error: unknown) => showError(error, 'input');

function chosenOptions(): LoadOptions {
  const chosen = document.querySelector<HTMLInputElement>('input[name=backends]:checked')?.value ?? 'auto';
  const strict = byId<HTMLInputElement>('strict').checked;
  return chosen === 'auto' ? { strict } : { strict, backends: chosen.split(',') as Backend[] };
}

const PHASES: Record<Progress['phase'], string> = { runtime: 'Starting the runtime', download: 'Reading the model', prepare: 'Placing the graph and preparing kernels' };

function showProgress({ phase, loaded, total }: Progress): void {
  if (phase === 'runtime' && loaded === total) return; // the model may be coming in already
  const bar = byId<HTMLProgressElement>('progress-bar');
  if (phase === 'download' && total) {
    bar.max = total;
    bar.value = loaded;
  } else {
    bar.removeAttribute('value');
  }
  byId('progress-text').textContent = phase === 'download' ? `${PHASES[phase]}: ${formatBytes(loaded)}${total ? ` of ${formatBytes(total)}` : ''}` : `${PHASES[phase]} …`;
}

async function open(next: Model): Promise<void> {
  model = next;
  loading?.abort();
  const controller = new AbortController();
  loading = controller;
  session?.close();
  session = undefined;
  inputs = undefined;
  setReady(false);
  clearError('model');
  byId('model-name').textContent = next.label;
  byId('progress').hidden = false;
  document.body.dataset['state'] = 'loading';
  try {
    const loaded = await load(next.source, { ...chosenOptions(), externalData: next.externalData, signal: controller.signal, onProgress: (progress) => { if (loading === controller) showProgress(progress); } });
    if (loading !== controller) return loaded.close();
    await show(loaded);
    if (loading !== controller) return;
    document.body.dataset['state'] = 'ready';
  } catch (error) {
    if (loading !== controller) return;
    document.body.dataset['state'] = 'failed';
    for (const id of ['inputs', 'summary', 'graph', 'memory']) byId(id).replaceChildren();
    outputs.clear('No model is loaded.');
    runTime.textContent = '';
    times.element.replaceChildren();
    showError(error, 'model');
  } finally {
    if (loading === controller) byId('progress').hidden = true;
  }
}

function setReady(ready: boolean): void {
  runButton.disabled = profileButton.disabled = !ready;
}

function changed(live: boolean): void {
  clearError('input');
  if (live) void run();
  else waitForRun();
}

async function show(loaded: Session): Promise<void> {
  session = loaded;
  inputs = new Inputs(loaded.inputs, changed, inputError);
  byId('inputs').replaceChildren(inputs.element);
  byId('actions').hidden = false;
  setReady(true);
  waitForRun();
  times.clear();
  showReport();
  if (model === DIGITS) await inputs.greet();
}

function waitForRun(): void {
  runTime.textContent = '';
  outputs.clear(inputs?.waiting ? 'Draw a digit or choose a picture, and the answer appears here.' : 'Press Run to see what the model says.');
}

function showReport(): void {
  if (!session) return;
  byId('summary').replaceChildren(summary(session.report));
  byId('graph').replaceChildren(placement(session.report));
  byId('memory').replaceChildren(memory(session.report));
}

/** Runs the model on what the form says; while a run is under way, the newest request waits. */
async function run(): Promise<void> {
  if (running) {
    again = true;
    return;
  }
  const current = session;
  if (!current || !inputs) return;
  if (inputs.waiting) return waitForRun();
  running = true;
  const slow = setTimeout(() => { runTime.textContent = 'running …'; }, 400);
  try {
    const feeds = inputs.feeds();
    const before = current.report;
    const start = performance.now();
    const result = await current.run(feeds);
    if (current !== session) return;
    runTime.textContent = formatTime((performance.now() - start) / 1000);
    clearError('run');
    outputs.show(result);
    if (current.report !== before) showReport();
  } catch (error) {
    if (current !== session) return;
    runTime.textContent = '';
    showError(error, 'run');
  } finally {
    clearTimeout(slow);
    running = false;
    if (again) {
      again = false;
      void run();
    }
  }
}

async function profile(): Promise<void> {
  const current = session;
  if (!current || !inputs) return;
  profileButton.disabled = true;
  try {
    const { outputs: result, nodes } = await current.profile(inputs.feeds());
    if (current !== session) return;
    clearError('run');
    if (!inputs.waiting) outputs.show(result);
    times.show(nodes);
    showReport();
  } catch (error) {
    if (current === session) showError(error, 'run');
  } finally {
    profileButton.disabled = current !== session;
  }
}

/** Model files are opened, with the others as their data files; a lone picture goes to the input. */
async function take(files: File[]): Promise<void> {
  const [first] = files;
  if (!first) return;
  if (first.type.startsWith('image/')) {
    if (!inputs) return inputError(new KilimError('STATE', 'there is no model yet that the picture could go to'));
    try {
      if (!(await inputs.takePicture(first))) inputError(new KilimError('INPUT', 'this model has no input that can hold a picture'));
    } catch (error) {
      inputError(error);
    }
    return;
  }
  const main = files.find(({ name }) => /\.(onnx|tflite)$/i.test(name)) ?? first;
  const externalData = Object.fromEntries(files.filter((file) => file !== main).map((file) => [file.name, file]));
  await open({ label: main.name, source: main, externalData });
}

runButton.addEventListener('click', () => void run());
profileButton.addEventListener('click', () => void profile());
byId('cancel').addEventListener('click', () => {
  loading?.abort();
  document.body.dataset['state'] = 'cancelled';
});
byId('digits').addEventListener('click', () => void open(DIGITS));
byId('url-form').addEventListener('submit', (event) => {
  event.preventDefault();
  const url = byId<HTMLInputElement>('url').value.trim();
  if (url) void open({ label: url.split('/').pop() || url, source: url, externalData: {} });
});
const fileInput = byId<HTMLInputElement>('file');
fileInput.addEventListener('change', () => {
  void take([...(fileInput.files ?? [])]);
  fileInput.value = '';
});
for (const radio of document.querySelectorAll('input[name=backends], #strict')) radio.addEventListener('change', () => void open(model));

for (const kind of ['dragenter', 'dragover'] as const) {
  addEventListener(kind, (event) => {
    event.preventDefault();
    document.body.classList.add('dragging');
  });
}
addEventListener('dragleave', (event) => {
  if (!event.relatedTarget) document.body.classList.remove('dragging');
});
addEventListener('drop', (event) => {
  event.preventDefault();
  document.body.classList.remove('dragging');
  void take([...(event.dataTransfer?.files ?? [])]);
});

byId('theme').addEventListener('click', () => {
  const root = document.documentElement;
  const dark = root.dataset['theme'] ? root.dataset['theme'] === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
  root.dataset['theme'] = dark ? 'light' : 'dark';
});

void open(DIGITS);
