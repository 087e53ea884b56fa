"""A training script with mistakes that only show together with its config and its launch command."""

import argparse

import deepspeed
import torch
from transformers import AutoModelForCausalLM

from data import token_batches


def parse_arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="Qwen/Qwen2.5-7B")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--out", default="checkpoints")
    return deepspeed.add_config_arguments(parser).parse_args()


def save(engine, folder):
    if deepspeed.comm.get_rank() == 0:
        torch.save(engine.module.state_dict(), f"{folder}/weights.pt")
        engine.save_checkpoint(folder)


def main():
    args = parse_arguments()
    deepspeed.init_distributed()
    model = AutoModelForCausalLM.from_pretrained(args.model, dtype="bfloat16")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    engine, _, _, _ = deepspeed.initialize(args=args, model=model, optimizer=optimizer)
    for epoch in range(args.epochs):
        for step, batch in enumerate(token_batches(engine.train_micro_batch_size_per_gpu())):
            batch = {name: tensor.to(engine.device) for name, tensor in batch.items()}
            loss = engine(**batch).loss
            engine.backward(loss / engine.gradient_accumulation_steps())
            engine.step()
            if step % 10 == 0 and deepspeed.comm.get_rank() == 0:
                print(f"epoch {epoch} step {step}: {loss.item():.4f}")
    save(engine, args.out)


if __name__ == "__main__":
    main()
