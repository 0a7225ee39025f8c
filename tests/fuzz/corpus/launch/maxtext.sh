export LIBTPU_INIT_ARGS="--xla_tpu_scoped_vmem_limit_kib=98304"
python3 -m MaxText.train src/maxtext/configs/base.yml model_name=llama3.1-8b ici_fsdp_parallelism=8 dcn_data_parallelism=-1 \
    hardware=gpu per_device_batch_size=2 max_target_length=8192 remat_policy='minimal' run_name="$(date)"
