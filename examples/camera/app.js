import { Tensor, load } from 'kilim';
import { toImageData, toTensor } from 'kilim/pictures';

const SIDE = 28;
const video = document.getElementById('video');
const answer = document.getElementById('answer');
const status = document.getElementById('status');
const canvas = document.getElementById('seen');
const context = canvas.getContext('2d');

/** The middle square of the frame as the model expects it: white ink on black, 0 to 1. */
function frameTensor() {
  const { videoWidth, videoHeight } = video;
  const side = Math.floor(Math.min(videoWidth, videoHeight) / 2);
  const crop = { x: Math.floor((videoWidth - side) / 2), y: Math.floor((videoHeight - side) / 2), width: side, height: side };
  const { data: grey, dims } = toTensor(video, { crop, size: SIDE, channels: 'gray' });
  // Paper is brighter than ink, whatever the light is.
  const [dark, bright] = [Math.min(...grey), Math.max(...grey)];
  const ink = grey.map((value) => Math.max(0, (bright - value) / Math.max(bright - dark, 0.2) - 0.3) / 0.7);
  const tensor = new Tensor('float32', dims, ink);
  context.putImageData(toImageData(tensor), 0, 0);
  return tensor;
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
