import { KilimError, load } from 'kilim';
import type { Session } from 'kilim';
import digits from '../../../assets/digits.onnx?url';
import { Bench } from './bench/bench.js';
import { Code } from './code/code.js';
import { Compare } from './compare/compare.js';
import { byId, formatTime } from './dom.js';
import { failure } from './failure.js';
import { GraphView } from './graph/graph.js';
import { Inputs } from './inputs/inputs.js';
import { memory } from './memory.js';
import { optionsOf } from './model.js';
import type { Choice, Model, OpenModel, Panel } from './model.js';
import { showProgress } from './progress.js';
import { summary } from './summary.js';
import { startTabs } from './tabs.js';
import { Answer } from './tasks/answer.js';
import { keepOffline } from './offline/register.js';
import { switchTheme } from './theme.js';
import { Times } from './times.js';

const DIGITS: Model = { label: 'Handwritten digits', source: new URL(digits, document.baseURI), externalData: {} };

const runButton = byId<HTMLButtonElement>('run');
const profileButton = byId<HTMLButtonElement>('profile');
const runTime = byId('run-time');
const answer = new Answer((error) => showError(error, 'input'));
const times = new Times();
byId('outputs').append(answer.element);
byId('times').append(times.element);

/** The parts of the page with a tab of their own, by the ids of their panels. */
const code = new Code();
const graph = new GraphView(() => void profile());
const compare = new Compare((result) => {
  if (shown) answer.show(result, shown.inputs.picture());
  showReport();
});
const panels: Record<string, Panel> = { graph, 'panel-bench': new Bench(), 'panel-compare': compare, 'panel-code': code };
for (const [id, panel] of Object.entries(panels)) byId(id).append(panel.element);

/** What the page shows. It stays until another model has been loaded. */
let shown: OpenModel | undefined;
let loading: { model: Model; controller: AbortController } | undefined;
/** A run is under way; `again` asks for one more when it is done. */
let running = false;
let again = false;

/** What the error on the page is about. */
type Cause = 'model' | 'input' | 'run';
let cause: Cause | undefined;

function showError(error: unknown, of: Cause, note?: string): void {
  if (error instanceof KilimError && error.code === 'ABORTED') return;
  cause = of;
  byId('error').replaceChildren(failure(error, note));
}

/** Takes an error away that no longer holds: a run that succeeds says nothing of a picture that cannot be read. */
function clearError(of: Cause): void {
  if (cause === of || of === 'model') byId('error').replaceChildren();
}

const inputError = (error: unknown) => showError(error, 'input');

const strictField = byId<HTMLInputElement>('strict');
const backendFields = [...document.querySelectorAll<HTMLInputElement>('input[name=backends]')];

function chosen(): Choice {
  return { backends: backendFields.find(({ checked }) => checked)?.value ?? 'auto', strict: strictField.checked };
}

function choose({ backends, strict }: Choice): void {
  for (const field of backendFields) field.checked = field.value === backends;
  strictField.checked = strict;
}

async function open(model: Model): Promise<void> {
  loading?.controller.abort();
  const mine = { model, controller: new AbortController() };
  loading = mine;
  const choice = chosen();
  clearError('model');
  byId('progress').hidden = false;
  document.body.dataset['state'] = 'loading';
  try {
    const { signal } = mine.controller;
    const session = await load(model.source, {
      ...optionsOf(choice),
      externalData: model.externalData,
      signal,
      onProgress: (progress) => {
        if (loading === mine) showProgress(progress);
      },
    });
    if (loading !== mine) return session.close();
    await show(model, choice, session);
  } catch (error) {
    if (loading !== mine) return;
    if (shown) choose(shown.choice);
    showError(error, 'model', `${model.label} was not loaded. ${shown ? `${shown.model.label} is still here.` : ''}`);
  } finally {
    if (loading === mine) {
      loading = undefined;
      byId('progress').hidden = true;
      document.body.dataset['state'] = shown ? 'ready' : 'empty';
    }
  }
}

/** What the form says has changed; runs the model where it is `live`. */
async function changed(live: boolean): Promise<void> {
  clearError('input');
  code.refresh();
  if (live) await run();
  else waitForRun();
}

/** Puts a session in place of the one before it. */
async function show(model: Model, choice: Choice, session: Session): Promise<void> {
  shown?.session.close();
  shown?.inputs.close();
  const inputs = new Inputs(session.inputs, changed, inputError);
  const opened = { model, choice, session, inputs };
  shown = opened;
  byId('model-name').textContent = model.label;
  byId('inputs').replaceChildren(inputs.element);
  runButton.disabled = profileButton.disabled = false;
  answer.begin({ inputs: session.inputs, outputs: session.outputs, picture: inputs.takesPicture });
  waitForRun();
  times.clear();
  for (const panel of Object.values(panels)) panel.show(opened);
  showReport();
  if (model === DIGITS) await inputs.greet();
}

function waitForRun(): void {
  runTime.textContent = '';
  answer.clear(
    shown?.inputs.waiting ? 'Draw a digit or choose a picture, and the answer appears here.' : 'Press Run to see what the model says.',
  );
}

function showReport(): void {
  if (!shown) return;
  const { report } = shown.session;
  byId('summary').replaceChildren(summary(report));
  byId('memory').replaceChildren(memory(report));
  graph.report(report);
}

/** Runs the model on what the form says; while a run is under way, the newest request waits. */
async function run(): Promise<void> {
  if (running) {
    again = true;
    return;
  }
  const current = shown;
  if (!current) return;
  const { session, inputs } = current;
  if (inputs.waiting) return waitForRun();
  running = true;
  const slow = setTimeout(() => {
    runTime.textContent = 'running …';
  }, 400);
  try {
    const feeds = inputs.feeds();
    const before = session.report;
    const start = performance.now();
    const result = await session.run(feeds);
    if (current !== shown) return;
    runTime.textContent = formatTime((performance.now() - start) / 1000);
    clearError('run');
    answer.show(result, inputs.picture());
    if (session.report !== before) showReport();
  } catch (error) {
    if (current !== shown) return;
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
  const current = shown;
  if (!current) return;
  const { session, inputs } = current;
  profileButton.disabled = true;
  try {
    const { outputs: result, nodes } = await session.profile(inputs.feeds());
    if (current !== shown) return;
    clearError('run');
    if (!inputs.waiting) answer.show(result, inputs.picture());
    times.show(nodes);
    showReport();
    graph.times(nodes);
  } catch (error) {
    if (current === shown) showError(error, 'run');
  } finally {
    if (current === shown) profileButton.disabled = false;
  }
}

/** Model files are opened, with the others as their data files; a lone picture goes to the input. */
async function take(files: File[]): Promise<void> {
  const [first] = files;
  if (!first) return;
  if (first.type.startsWith('image/')) {
    if (!shown) return inputError(new KilimError('STATE', 'there is no model yet that the picture could go to'));
    try {
      if (!(await shown.inputs.takePicture(first))) inputError(new KilimError('INPUT', 'this model has no input that can hold a picture'));
    } catch (error) {
      inputError(error);
    }
    return;
  }
  const main = files.find(({ name }) => /\.(onnx|ort|tflite|circle|gguf|param|param\.bin|mnn|tmfile|tnnproto)$/i.test(name)) ?? first;
  const externalData = Object.fromEntries(files.filter((file) => file !== main).map((file) => [file.name, file]));
  await open({ label: main.name, source: main, externalData });
}

runButton.addEventListener('click', () => void run());
profileButton.addEventListener('click', () => void profile());
byId('cancel').addEventListener('click', () => loading?.controller.abort());
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
for (const field of [...backendFields, strictField]) field.addEventListener('change', () => void open((loading ?? shown)?.model ?? DIGITS));

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

startTabs(byId('tabs'));
switchTheme();
void keepOffline();
void open(DIGITS);
