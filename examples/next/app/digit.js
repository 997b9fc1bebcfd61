'use client';

import { Tensor, load } from 'kilim';
import { useEffect, useState } from 'react';

let loading;
/** One session for the whole application, loaded when it is needed first. */
const digits = () => (loading ??= load('/digits.onnx'));

/** 28 by 28 pixels of grey from 0 to 1. */
const digitTensor = (file) => Tensor.from(file, { size: 28, channels: 'gray' });

async function answer(file) {
  const session = await digits();
  const { probabilities } = await session.run({ image: await digitTensor(file) });
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
