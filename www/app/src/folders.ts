// Opens the model of a folder: one of the visitor's, or one by its address.
import { KilimError } from 'kilim';
import type { Backend, LoadOptions } from 'kilim';
import type { FolderSource } from 'kilim/text';
import { byId } from './dom.js';
import { failure } from './failure.js';
import { showProgress } from './progress.js';

/** Shows what went wrong; an abort is the visitor's own wish. */
export function showError(error: unknown): void {
  if (error instanceof KilimError && error.code === 'ABORTED') return;
  byId('error').replaceChildren(failure(error));
}

function backends(): { backends?: Backend[] } {
  const chosen = document.querySelector<HTMLInputElement>('input[name=backends]:checked')?.value ?? 'auto';
  return chosen === 'auto' ? {} : { backends: chosen.split(',') as Backend[] };
}

/** Loads each folder that is chosen with `load`, in place of the one before, and gives its model to `opened`. */
export function chooseFolders<M extends { close(): void }>(
  load: (folder: FolderSource, options: Pick<LoadOptions, 'backends' | 'signal' | 'onProgress'>) => Promise<M>,
  opened: (model: M) => void,
): void {
  let loading: AbortController | undefined;
  let current: M | undefined;

  async function open(label: string, folder: FolderSource): Promise<void> {
    loading?.abort();
    const mine = new AbortController();
    loading = mine;
    byId('error').replaceChildren();
    byId('progress').hidden = false;
    try {
      const onProgress: typeof showProgress = (progress) => {
        if (loading === mine) showProgress(progress);
      };
      const model = await load(folder, { ...backends(), signal: mine.signal, onProgress });
      if (loading !== mine) return model.close();
      const before = current;
      current = model;
      byId('model-name').textContent = label;
      opened(model);
      before?.close();
      document.body.dataset['state'] = 'ready';
    } catch (error) {
      if (loading === mine) showError(error);
    } finally {
      if (loading === mine) {
        loading = undefined;
        byId('progress').hidden = true;
      }
    }
  }

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
}
