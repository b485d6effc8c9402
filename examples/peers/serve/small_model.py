# SPDX-License-Identifier: Apache-2.0
"""small_model.py FOLDER: a Llama of 0.1 million random weights and a tokenizer of bytes, for trying a server."""
import sys

from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

CHAT = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}<assistant>"


def main():
    alphabet = {letter: at for at, letter in enumerate(["<end>", *sorted(pre_tokenizers.ByteLevel.alphabet())])}
    tokenizer = Tokenizer(models.BPE(vocab=alphabet, merges=[]))
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<end>", pad_token="<end>",
                            chat_template=CHAT).save_pretrained(sys.argv[1])
    LlamaForCausalLM(LlamaConfig(vocab_size=len(alphabet), hidden_size=64, intermediate_size=128, num_hidden_layers=2,
                                 num_attention_heads=4, max_position_embeddings=512, bos_token_id=None, eos_token_id=0,
                                 pad_token_id=0)).save_pretrained(sys.argv[1])


if __name__ == "__main__":
    main()
