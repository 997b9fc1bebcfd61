import { el } from './dom.js';

/** A button that puts a text on the clipboard and says whether it could. */
export function copyButton(label: string, text: () => string): HTMLButtonElement {
  const button = el('button', { type: 'button', 'aria-live': 'polite' }, label);
  button.addEventListener('click', async () => {
    const copied = await navigator.clipboard?.writeText(text()).then(
      () => true,
      () => false,
    );
    button.textContent = copied ? 'Copied' : 'The browser does not let it be copied';
    setTimeout(() => {
      button.textContent = label;
    }, 2000);
  });
  return button;
}
