#!/bin/bash
#SBATCH --nodes=8
#SBATCH --ntasks-per-node=8
TP=${TP:-4}
GPUS=$((SLURM_NNODES * 8))
MODEL=(
    --num-layers 32 # all of them
    --hidden-size 4096
    --num-attention-heads 32
    --group-query-attention
    --num-query-groups 8
    --swiglu
)
if [ "$TP" -gt 1 ]; then
    MODEL+=(--sequence-parallel)
fi
srun python pretrain_gpt.py "${MODEL[@]}" --tensor-model-parallel-size $TP \
    --seq-length 4096 --micro-batch-size 1 --global-batch-size 256 \
    --vocab-size "50304" --bf16 --use-distributed-optimizer 2>&1 | tee log.txt
