import { detectVariant } from 'kilim';
import { el } from '../dom.js';

/** Has the app open without a network from now on, and offers a newer version when it is there. */
export async function keepOffline(): Promise<void> {
  if (!import.meta.env.PROD || !('serviceWorker' in navigator)) return;
  const { serviceWorker } = navigator;
  // Where a visitor's settings allow none, the app is as it was.
  const registration = await serviceWorker.register('./sw.js').catch(() => undefined);
  if (!registration) return;
  offer(registration);
  registration.addEventListener('updatefound', () => {
    const { installing } = registration;
    installing?.addEventListener('statechange', () => offer(registration));
  });
  const ready = await serviceWorker.ready;
  // The worker isolates pages that are loaded from then on.
  const builds = [detectVariant() ?? [], 'threads'].flat();
  const { port1, port2 } = new MessageChannel();
  // Nothing of the network is needed any more.
  port1.onmessage = () => {
    document.documentElement.dataset['offline'] = 'kept';
  };
  ready.active?.postMessage({ builds }, [port2]);
}

/** Says that another version waits, where one does and an older one is open. */
function offer({ waiting }: ServiceWorkerRegistration): void {
  if (!waiting || !navigator.serviceWorker.controller || document.querySelector('.update')) return;
  const use = () => {
    navigator.serviceWorker.addEventListener('controllerchange', () => location.reload(), { once: true });
    waiting.postMessage({ use: true });
  };
  const later = () => bar.remove();
  const bar = el(
    'div',
    { class: 'update', role: 'status', 'data-testid': 'update' },
    'A newer version of this page is here. ',
    el('button', { type: 'button', class: 'primary', 'data-testid': 'update-use', click: use }, 'Use it'),
    el('button', { type: 'button', class: 'quiet', click: later }, 'Later'),
  );
  document.body.append(bar);
}
