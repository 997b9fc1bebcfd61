import { KilimError, Tensor, load } from 'kilim';

const file = document.getElementById('file') as HTMLInputElement;
const answer = document.getElementById('answer') as HTMLOutputElement;

// One session for all pictures. It starts to load when the page opens.
const loading = load('/digits.onnx');

file.addEventListener('change', async () => {
  const [picture] = file.files ?? [];
  if (!picture) return;
  try {
    const session = await loading;
    const { probabilities } = await session.run({ image: await Tensor.from(picture, { size: 28, channels: 'gray' }) });
    const scores = Array.from(probabilities?.data ?? [], Number);
    const best = scores.indexOf(Math.max(...scores));
    answer.textContent = `${best} (${Math.round((scores[best] ?? 0) * 100)} %)`;
  } catch (error) {
    answer.textContent = error instanceof KilimError ? `${error.code}: ${error.message}` : String(error);
  }
});
