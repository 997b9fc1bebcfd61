'use client';

import { load } from 'kilim';
import { useEffect, useState } from 'react';

let loading;
/** One session for the whole application, loaded when it is needed first. */
const digits = () => (loading ??= load('/digits.onnx'));

/** A picture as the model expects it: 28 by 28 pixels of grey from 0 to 1. */
async function digitPixels(file) {
  const context = new OffscreenCanvas(28, 28).getContext('2d');
  context.drawImage(await createImageBitmap(file), 0, 0, 28, 28);
  const { data } = context.getImageData(0, 0, 28, 28);
  return Float32Array.from({ length: 28 * 28 }, (_, i) => data[i * 4] / 255);
}

async function answer(file) {
  const session = await digits();
  const { probabilities } = await session.run({ image: await digitPixels(file) });
  const best = probabilities.data.indexOf(Math.max(...probabilities.data));
  return `${best} (${Math.round(probabilities.data[best] * 100)} %)`;
}

export default function Digit() {
  const [file, setFile] = useState(null);
  const [text, setText] = useState('');
  useEffect(() => {
    if (!file) return;
    let current = true;
    answer(file).then(
      (text) => current && setText(text),
      (error) => current && setText(error.message),
    );
    return () => {
      current = false;
    };
  }, [file]);
  return (
    <>
      <label>
        A picture of a digit, white on black:{' '}
        <input id="file" type="file" accept="image/*" onChange={(event) => setFile(event.target.files[0] ?? null)} />
      </label>
      <p>
        <output id="answer">{text}</output>
      </p>
    </>
  );
}
