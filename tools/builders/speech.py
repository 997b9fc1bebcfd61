"""Small speech models as Optimum exports them, trained on digits that are tones, and what transformers hears with them.

    python -m venv target/speech-builder
    target/speech-builder/bin/python -m pip install -r tools/builders/speech.txt   # with torch: about 7 GB on x86-64 Linux
    target/speech-builder/bin/python tools/builders/speech.py FOLDER

trains and writes FOLDER/NAME for each of `MODELS`, and packs all as the reference cases `tests/references/speech.zip`. The windows of
the Whisper model have two seconds, so that it is small. Weights and sounds are seeded.
"""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import torch
import transformers

import tokenizer

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "references"))
from common import Cases  # noqa: E402

RATE = 16_000
SECONDS = 2
# Places of the encoder in a window, and times from its begin to its end.
PLACES = 50 * SECONDS
TEXT = 300
SPECIAL = ["<|endoftext|>", "<|startoftranscript|>", "<|en|>", "<|de|>", "<|fr|>", "<|translate|>", "<|transcribe|>", "<|notimestamps|>"]
END, START, EN, DE, FR, TRANSLATE, TRANSCRIBE, NO_TIMES = range(TEXT, TEXT + len(SPECIAL))
FIRST_TIME = NO_TIMES + 1

MODELS = ["whisper", "moonshine"]
WHISPER_STEPS, MOONSHINE_STEPS = 4000, 4000


# A digit is a tone, and a higher one beside it tells the language, in which digits or letters are written.
VOICE = {EN: 3.0, DE: 4.5}
LETTERS = "abcdefghij"


def digit(number, language, start, length, samples):
    """Adds a digit to samples; it begins and ends softly."""
    first, last = round(start * RATE), min(round((start + length) * RATE), len(samples))
    if last <= first:
        return
    t = np.arange(last - first) / RATE
    pitch = 300.0 * 1.2**number
    loudness = np.minimum(1.0, np.minimum(t, t[::-1]) / 0.01)
    wave = np.sin(2 * np.pi * pitch * t) + 0.5 * np.sin(2 * np.pi * VOICE[language] * pitch * t)
    samples[first:last] += 0.2 * loudness * wave


class Speech:
    """Phrases of digits, `[start, end, digits]`, and their sound."""

    def __init__(self, phrases, language, seconds):
        self.phrases, self.language, self.seconds = phrases, language, seconds
        self.samples = np.zeros(round(seconds * RATE))
        for start, end, digits in phrases:
            each = (end - start) / len(digits)
            for place, number in enumerate(digits):
                digit(number, language, start + place * each, 0.75 * each, self.samples)

    @staticmethod
    def drawn(random, seconds):
        """Phrases in a window. The last one may go on behind it, or silence be there."""
        language = int(random.choice([EN, DE]))
        phrases, at = [], random.uniform(0.0, 0.5)
        last = seconds if random.random() < 0.6 else random.uniform(0.0, seconds)
        while at < last:
            digits = random.integers(0, 10, random.integers(1, 5)).tolist()
            end = at + len(digits) * random.uniform(0.14, 0.22)
            phrases.append([at, end, digits])
            at = end + random.uniform(0.2, 0.6)
        return Speech(phrases, language, seconds)

    def text(self, digits, translate):
        """What is written, with a space before it."""
        letters = self.language == DE and not translate
        return " " + "".join(LETTERS[number] if letters else str(number) for number in digits)


def tokens(speech, encode, translate, times):
    """What a model of speech should say of a window, behind its prompt."""
    said = []
    for start, end, digits in speech.phrases:
        begun = [FIRST_TIME + round(start / 0.02)] if times else []
        if end > speech.seconds:
            # It will be heard whole in the next window.
            return said + begun
        ended = [FIRST_TIME + round(end / 0.02)] if times else []
        # A word for each digit, whatever the tokenizer would join.
        text = [word for letter in speech.text(digits, translate) for word in encode(letter)]
        said += begun + text + ended
    return said


def words(folder, names):
    """`tokenizer.json` with so many words of text, and these behind them."""
    tokenizer.write(folder, TEXT)
    file = folder / "tokenizer.json"
    made = transformers.PreTrainedTokenizerFast(tokenizer_file=str(file))
    made.add_special_tokens({"additional_special_tokens": names})
    made.backend_tokenizer.save(str(file))
    (folder / "tokenizer_config.json").unlink()
    return lambda text: made.backend_tokenizer.encode(text, add_special_tokens=False).ids


def train(network, batch, steps):
    """Trains a network on what `batch` draws: its inputs, the words it is given, and those that it should say, -100 where any will do."""
    optimizer = torch.optim.AdamW(network.parameters(), lr=2e-3, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2e-3, total_steps=steps)
    for step in range(steps):
        inputs, given, wanted = batch()
        scores = network(**inputs, decoder_input_ids=given, use_cache=False).logits
        loss = torch.nn.functional.cross_entropy(scores.flatten(0, 1), wanted.flatten(), ignore_index=-100)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step % 100 == 0:
            print(f"step {step}: {loss.item():.4f}", flush=True)
    return network.eval()


def rows(pairs):
    """Given and wanted words of a batch, filled up."""
    length = max(len(given) for given, _ in pairs)
    filled = [[row + [fill] * (length - len(row)) for row in column] for column, fill in zip(zip(*pairs), [0, -100])]
    return [torch.tensor(column) for column in filled]


def spectra(samples, extractor):
    """Log-mel spectra of several windows."""
    made = torch.stft(samples, 400, 160, window=torch.hann_window(400), return_complex=True)[..., :-1].abs() ** 2
    mel = torch.from_numpy(extractor.mel_filters).float().T @ made
    log = mel.clamp(min=1e-10).log10()
    log = torch.maximum(log, log.amax(dim=(1, 2), keepdim=True) - 8.0)
    return (log + 4.0) / 4.0


def noisy(random, samples):
    loudness = random.uniform(0.3, 1.5)
    return (samples * loudness + random.normal(0.0, random.uniform(0.0, 0.01), len(samples))).astype(np.float32)


def whisper(folder):
    names = [f"<|{i * 0.02:.2f}|>" for i in range(PLACES + 1)]
    encode = words(folder, SPECIAL + names)
    torch.manual_seed(7)
    config = transformers.WhisperConfig(
        vocab_size=TEXT + len(SPECIAL) + len(names),
        d_model=48,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=96,
        decoder_ffn_dim=96,
        max_source_positions=PLACES,
        max_target_positions=48,
        pad_token_id=END,
        bos_token_id=END,
        eos_token_id=END,
        decoder_start_token_id=START,
        suppress_tokens=[],
        begin_suppress_tokens=[],
    )
    network = transformers.WhisperForConditionalGeneration(config)
    extractor = transformers.WhisperFeatureExtractor(chunk_length=SECONDS)
    random = np.random.default_rng(7)

    def batch():
        sounds, pairs = [], []
        for _ in range(32):
            speech = Speech.drawn(random, SECONDS)
            translate, times = random.random() < 0.3, random.random() < 0.7
            said = tokens(speech, encode, translate, times) + [END]
            prompt = [speech.language, TRANSLATE if translate else TRANSCRIBE] + ([] if times else [NO_TIMES])
            given = [START, *prompt, *said[:-1]]
            pairs.append((given, [speech.language] + [-100] * (len(prompt) - 1) + said))
            sounds.append(noisy(random, speech.samples))
        return {"input_features": spectra(torch.from_numpy(np.stack(sounds)), extractor)}, *rows(pairs)

    train(network, batch, WHISPER_STEPS)
    for name, value in {
        "is_multilingual": True,
        "no_timestamps_token_id": NO_TIMES,
        "max_initial_timestamp_index": 50,
        "max_length": 48,
        "suppress_tokens": [START, EN, DE, FR, TRANSLATE, TRANSCRIBE],
        "begin_suppress_tokens": [END],
        "return_timestamps": False,
        "lang_to_id": {"<|en|>": EN, "<|de|>": DE, "<|fr|>": FR},
        "task_to_id": {"translate": TRANSLATE, "transcribe": TRANSCRIBE},
    }.items():
        setattr(network.generation_config, name, value)
    return network, extractor


def moonshine(folder):
    encode = words(folder, [])
    torch.manual_seed(7)
    config = transformers.MoonshineConfig(
        vocab_size=TEXT,
        hidden_size=48,
        intermediate_size=96,
        encoder_num_hidden_layers=2,
        decoder_num_hidden_layers=2,
        encoder_num_attention_heads=2,
        decoder_num_attention_heads=2,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=1,
    )
    network = transformers.MoonshineForConditionalGeneration(config)
    random = np.random.default_rng(7)

    def batch():
        # All sounds of a batch are equally long.
        seconds = random.uniform(0.8, 2.5)
        sounds, pairs = [], []
        for _ in range(32):
            speech = Speech.drawn(random, seconds)
            said = tokens(speech, encode, False, False) + [2]
            pairs.append(([1, *said[:-1]], said))
            sounds.append(noisy(random, speech.samples))
        return {"input_values": torch.from_numpy(np.stack(sounds))}, *rows(pairs)

    train(network, batch, MOONSHINE_STEPS)
    return network, transformers.Wav2Vec2FeatureExtractor(do_normalize=False, return_attention_mask=True)


def export(network, extractor, folder):
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        network.save_pretrained(scratch / "source")
        extractor.save_pretrained(folder)
        command = [str(pathlib.Path(sys.executable).parent / "optimum-cli"), "export", "onnx", "--model", scratch / "source"]
        task = ["--task", "automatic-speech-recognition-with-past", "--nb_max_frames", str(2 * PLACES), scratch / "made"]
        subprocess.run([*command, *task], check=True)
        for name in ["encoder_model.onnx", "decoder_model_merged.onnx"]:
            model = onnx.load(scratch / "made" / name)
            slim(model.graph)
            onnx.save(model, folder / name)
        shutil.copy(scratch / "made" / "config.json", folder / "config.json")
        network.generation_config.save_pretrained(folder)


def slim(graph):
    """Leaves out what only people read."""
    del graph.value_info[:]
    for node in graph.node:
        node.ClearField("doc_string")
        del node.metadata_props[:]
        for attribute in node.attribute:
            if attribute.HasField("g"):
                slim(attribute.g)


# The sounds that models are asked about: phrases, language, seconds.
HEARD = [
    [[[0.10, 0.70, [3, 1, 4]]], EN, 1.0],
    [[[0.30, 0.86, [1, 5, 9]], [1.20, 1.60, [2, 6]]], EN, 2.0],
    [[[0.06, 0.82, [5, 3, 5, 8]], [1.10, 1.50, [0, 7]]], DE, 2.0],
    [[[0.50, 0.90, [9, 9]]], DE, 1.3],
]


def whisper_cases(network, extractor):
    cases = []
    for phrases, language, seconds in HEARD:
        speech = Speech(phrases, language, seconds)
        inputs = extractor(speech.samples.astype(np.float32), sampling_rate=RATE, return_tensors="pt")
        code = {EN: "en", DE: "de"}[language]
        for asked in [{"language": code, "task": "translate"}, {"task": "transcribe"}]:
            for times in [False, True]:
                with torch.no_grad():
                    made = network.generate(inputs.input_features, return_timestamps=times, return_dict_in_generate=True, **asked)
                row = made["sequences"][0].tolist()
                prompt = {START, EN, DE, FR, TRANSLATE, TRANSCRIBE, NO_TIMES}
                cases.append({
                    "phrases": phrases,
                    "voice": VOICE[language],
                    "seconds": seconds,
                    "language": asked.get("language"),
                    "spoken": code,
                    "translate": asked["task"] == "translate",
                    "times": times,
                    "words": [word for word in row if word not in prompt and word != END],
                })
    return cases


def moonshine_cases(network, extractor):
    cases = []
    for phrases, language, seconds in HEARD:
        speech = Speech(phrases, language, seconds)
        inputs = extractor(speech.samples.astype(np.float32), sampling_rate=RATE, return_tensors="pt")
        with torch.no_grad():
            made = network.generate(**inputs, do_sample=False, max_length=int(np.ceil(seconds * 6.5)))
        row = made[0].tolist()
        case = {"phrases": phrases, "voice": VOICE[language], "seconds": seconds, "times": False}
        cases.append({**case, "words": [word for word in row[1:] if word != 2]})
    return cases


def spectrum(extractor):
    """Some numbers of a log-mel spectrum: bands and frames that lie far apart."""
    phrases, language, seconds = HEARD[0]
    samples = Speech(phrases, language, seconds).samples.astype(np.float32)
    made = extractor(samples, sampling_rate=RATE, return_tensors="np").input_features[0]
    return made[::7, ::9].astype(float).round(5).tolist()


def main(target):
    target = pathlib.Path(target)
    cases = Cases("speech")
    for name in MODELS:
        folder = target / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        if name == "moonshine":
            network, extractor = moonshine(folder)
            case = {"heard": moonshine_cases(network, extractor)}
        else:
            network, extractor = whisper(folder)
            case = {"heard": whisper_cases(network, extractor), "spectrum": spectrum(extractor)}
        export(network, extractor, folder)
        files = {file.name: file.read_bytes() for file in sorted(folder.iterdir())}
        cases.add_files({"name": name, "path": name, **case}, files)
    cases.write()


main(*sys.argv[1:])
