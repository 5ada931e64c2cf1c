"""Records logits of Hugging Face transformers (f32) on the weights of a GGUF file, for tests/reference_logits_test.cc.

usage: make_logit_cases.py FILE.gguf PROMPTS.json OUT.json      needs torch, transformers, gguf

PROMPTS.json: a list of lists of token ids. For each prompt OUT.json holds the ids, the range of the last row's logits
and the logits of every STRIDE-th token id plus the 20 best.
"""
import json
import os
import sys

os.environ["HF_HUB_OFFLINE"] = "1"
import torch
from transformers import AutoModelForCausalLM

STRIDE = 97


def main():
    gguf_path, prompts_path, out_path = sys.argv[1:4]
    folder, name = os.path.split(os.path.abspath(gguf_path))
    model = AutoModelForCausalLM.from_pretrained(folder, gguf_file=name, dtype=torch.float32).eval()
    cases = []
    for ids in json.load(open(prompts_path)):
        with torch.no_grad():
            logits = model(torch.tensor([ids]), logits_to_keep=1).logits[0, -1].double()
        best = torch.topk(logits, 20).indices.tolist()
        sample = sorted(set(range(0, logits.shape[0], STRIDE)) | set(best))
        cases.append({
            "ids": ids,
            "min": logits.min().item(),
            "max": logits.max().item(),
            "argmax": best[0],
            "sample": {str(i): round(logits[i].item(), 5) for i in sample},
        })
        print(len(ids), best[:5], [round(logits[i].item(), 4) for i in best[:5]], flush=True)
    json.dump({"made_by": "tools/make_logit_cases.py " + " ".join(os.path.basename(a) for a in sys.argv[1:]),
               "cases": cases}, open(out_path, "w"), separators=(",", ":"))


if __name__ == "__main__":
    main()
