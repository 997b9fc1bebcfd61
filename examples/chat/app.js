import { loadText } from 'kilim/text';

const byId = (id) => document.getElementById(id);
const show = (text) => {
  byId('status').textContent = text;
};
/** A line of the conversation. */
const line = (text) => {
  const item = document.createElement('li');
  item.textContent = text;
  byId('talk').append(item);
  return item;
};

async function main() {
  const model = await loadText('model/', {
    onProgress: ({ phase, loaded, total }) => show(phase === 'download' && total ? `${Math.round((100 * loaded) / total)} %` : phase),
  });
  const conversation = model.conversation();
  let speaking;
  const say = async (text) => {
    line(text);
    const answer = line('');
    speaking = new AbortController();
    byId('send').textContent = 'Stop';
    try {
      const made = await conversation.say(text, { signal: speaking.signal, onText: (piece) => answer.append(piece) });
      show(made.wordsPerSecond ? `${made.wordsPerSecond.toFixed(1)} words a second` : '');
    } finally {
      speaking = undefined;
      byId('send').textContent = 'Send';
    }
  };
  byId('form').addEventListener('submit', (event) => {
    event.preventDefault();
    if (speaking) return speaking.abort();
    const text = byId('said').value.trim();
    byId('said').value = '';
    if (text) say(text).catch(failed);
  });
  byId('send').disabled = false;
  show('Say something.');
}

function failed(error) {
  show(error.message);
}

main().catch(failed);
