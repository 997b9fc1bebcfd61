import { Tokenizer } from '@huggingface/tokenizers';
import { fromNumbers, load } from 'kilim';

const byId = (id) => document.getElementById(id);

async function json(url) {
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${url}: ${response.status} ${response.statusText}`);
  return response.json();
}

/** The mean of the vectors of a sentence's tokens, of length 1. */
async function embed(session, tokenizer, text) {
  const { ids, attention_mask } = tokenizer.encode(text);
  const dims = [1, ids.length];
  const values = { input_ids: ids, attention_mask, token_type_ids: ids.map(() => 0) };
  // A model may do without some of them.
  const feeds = Object.fromEntries(session.inputs.map(({ name }) => [name, fromNumbers('int64', dims, values[name])]));
  const [tokens] = Object.values(await session.run(feeds));
  const width = tokens.dims.at(-1);
  const mean = Float32Array.from({ length: width }, (_, i) => {
    let sum = 0;
    for (let token = 0; token < ids.length; token++) sum += tokens.data[token * width + i];
    return sum / ids.length;
  });
  const length = Math.hypot(...mean);
  return mean.map((value) => value / length);
}

async function main() {
  const [session, tokenizer] = await Promise.all([
    load('model.onnx'),
    json('tokenizer.json').then((description) => new Tokenizer(description, {})),
  ]);
  const compare = async () => {
    const first = await embed(session, tokenizer, byId('first').value);
    const second = await embed(session, tokenizer, byId('second').value);
    const cosine = first.reduce((sum, value, i) => sum + value * second[i], 0);
    byId('answer').textContent = cosine.toFixed(3);
    byId('status').textContent = '1 is the same, 0 has nothing in common.';
  };
  byId('form').addEventListener('submit', (event) => {
    event.preventDefault();
    compare().catch(failed);
  });
  await compare();
}

function failed(error) {
  byId('status').textContent = error.message;
}

main().catch(failed);
