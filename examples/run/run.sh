#!/bin/bash
GPUS=${GPUS:-8}
CONFIG=ds_config.json

deepspeed --num_gpus $GPUS train.py \
    --deepspeed \
    --deepspeed_config $CONFIG \
    --epochs 3
