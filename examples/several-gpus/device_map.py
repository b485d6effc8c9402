"""A Llama that no GPU has to hold alone: device_map="auto" puts its layers on all of them, and a text goes through them in turn.

    pip install transformers accelerate
    python device_map.py

The model is made here, with random weights: nothing is downloaded.
"""
import tempfile

import torch
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM

LAYERS, TOKENS = 8, 24


def main():
    torch.manual_seed(0)
    config = LlamaConfig(vocab_size=512, hidden_size=256, intermediate_size=512, num_hidden_layers=LAYERS,
                         num_attention_heads=8, num_key_value_heads=4, eos_token_id=None, pad_token_id=0)
    prompt = torch.arange(1, 9).unsqueeze(0)
    with tempfile.TemporaryDirectory() as folder:
        whole = LlamaForCausalLM(config).eval()
        whole.save_pretrained(folder)
        count = torch.cuda.device_count()
        size = sum(p.numel() * p.element_size() for p in whole.parameters())
        # So little for each that one alone cannot have it all.
        room = {i: int(size * (1.3 / count if count > 1 else 1.3)) for i in range(count)}
        split = AutoModelForCausalLM.from_pretrained(folder, device_map="auto", max_memory=room or None).eval()
    places = [str(layer.self_attn.q_proj.weight.device) for layer in split.model.layers]
    print("layers on", ", ".join(f"{place}: {places.count(place)}" for place in sorted(set(places))), flush=True)
    with torch.no_grad():
        want = whole(prompt).logits
        got = split(prompt.to(places[0])).logits.cpu()
        print(f"logits differ by {(got - want).abs().max().item():.2g} from those of one device")
        text = split.generate(prompt.to(places[0]), max_new_tokens=TOKENS, do_sample=False)
    print(f"{TOKENS} tokens: {text[0, prompt.shape[1]:].tolist()}")


if __name__ == "__main__":
    main()
