import { load } from 'kilim';

const SIDE = 28;
const video = document.getElementById('video');
const answer = document.getElementById('answer');
const status = document.getElementById('status');
const canvas = document.getElementById('seen');
const context = canvas.getContext('2d', { willReadFrequently: true });

/** The middle square of the frame as the model expects it: white ink on black, 0 to 1, row by row. */
function frameTensor() {
  const side = Math.min(video.videoWidth, video.videoHeight) / 2;
  context.drawImage(video, (video.videoWidth - side) / 2, (video.videoHeight - side) / 2, side, side, 0, 0, SIDE, SIDE);
  const picture = context.getImageData(0, 0, SIDE, SIDE);
  const grey = Float32Array.from({ length: SIDE * SIDE }, (_, i) => {
    const [red, green, blue] = picture.data.subarray(i * 4, i * 4 + 3);
    return (0.299 * red + 0.587 * green + 0.114 * blue) / 255;
  });
  // Paper is brighter than ink, whatever the light is.
  const [dark, bright] = [Math.min(...grey), Math.max(...grey)];
  const ink = grey.map((value) => Math.max(0, (bright - value) / Math.max(bright - dark, 0.2) - 0.3) / 0.7);
  ink.forEach((value, i) => picture.data.set([value * 255, value * 255, value * 255, 255], i * 4));
  context.putImageData(picture, 0, 0);
  return ink;
}

async function main() {
  const session = await load('digits.onnx');
  video.srcObject = await navigator.mediaDevices.getUserMedia({ video: { facingMode: 'environment' } });
  await video.play();
  status.textContent = 'Hold a digit into the middle of the picture.';
  // The next frame is asked for when the last answer is there: frames that come meanwhile are skipped.
  const next = async () => {
    const { probabilities } = await session.run({ image: frameTensor() });
    const best = probabilities.data.indexOf(Math.max(...probabilities.data));
    answer.textContent = `${best} (${Math.round(probabilities.data[best] * 100)} %)`;
    video.requestVideoFrameCallback(() => next().catch(failed));
  };
  await next();
}

function failed(error) {
  status.textContent = error.message;
}

main().catch(failed);
