NGPU=8 MODULE=llama3 CONFIG=llama3_8b ./run_train.sh --parallelism.tensor_parallel_degree 2 --parallelism.pipeline_parallel_degree=2 \
    --parallelism.pipeline-parallel-schedule Interleaved1F1B activation-checkpoint:full
