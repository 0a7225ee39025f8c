# SPDX-License-Identifier: GPL-3.0-or-later
"""What a context says of checkpoints. Most options are of speed and of the form of files, and change nothing here. Source of names, defaults and texts: google/orbax,
checkpoint/orbax/checkpoint/experimental/v1/_src/context/options.py."""
import dataclasses

frozen = []  # for each context in use, the ids of its options


class _Options:
    def __setattr__(self, name, value):
        if any(id(self) in ids for ids in frozen):
            raise RuntimeError("Cannot mutate options of an active context. Configure before entering the `with` block.")
        object.__setattr__(self, name, value)


_options = dataclasses.dataclass(kw_only=True)


def _group(kind):
    return dataclasses.field(default_factory=kind)


@_options
class AsyncOptions(_Options):
    timeout_secs: int = 1200
    post_finalization_callback: object = None
    create_directories_asynchronously: bool = True


@_options
class AtomicityOptions(_Options):
    mode: object = None
    allow_legacy_atomic_rename: bool = False


@_options
class MultiprocessingOptions(_Options):
    primary_host: object = 0
    active_processes: object = None
    barrier_sync_key_prefix: object = None


@_options
class FileOptions(_Options):
    path_permission_mode: object = None
    path_class: object = None


@_options
class PyTreeOptions(_Options):
    @_options
    class Saving(_Options):
        pytree_metadata_options: object = None

    @_options
    class Loading(_Options):
        partial_load: bool = False

    saving: Saving = _group(Saving)
    loading: Loading = _group(Loading)


@_options
class ArrayOptions(_Options):
    @_options
    class Saving(_Options):
        @_options
        class StorageOptions(_Options):
            dtype: object = None
            chunk_byte_size: object = None
            shard_axes: object = None

        storage_options: StorageOptions = _group(StorageOptions)
        use_ocdbt: bool = True
        use_zarr3: bool = True
        use_compression: bool = True
        ocdbt_target_data_file_size: object = None
        enable_pinned_host_transfer: object = None
        enable_post_merge_validation: bool = True
        use_replica_parallel: object = None
        min_slice_bytes_for_replica_parallel: object = None
        max_replicas_for_replica_parallel: object = None
        enable_replica_parallel_separate_folder: bool = False
        enable_write_sharding_file: bool = True
        array_metadata_store: object = None
        scoped_storage_options_creator: object = None

    @_options
    class Loading(_Options):
        @_options
        class LoadAndBroadcastOptions(_Options):
            replica_axis_index: object = 0
            primary_replica_id: object = 0
            broadcast_memory_limit_bytes: object = None
            broadcast_memory_scaling_factor: object = 0.75

        load_and_broadcast_options: LoadAndBroadcastOptions = _group(LoadAndBroadcastOptions)
        enable_padding_and_truncation: bool = False
        raise_array_data_missing_error: bool = True
        use_load_and_broadcast: bool = False

    saving: Saving = _group(Saving)
    loading: Loading = _group(Loading)


@_options
class CheckpointablesOptions(_Options):
    registry: object = None


@_options
class PathwaysOptions(_Options):
    checkpointing_impl: object = None


@_options
class DeletionOptions(_Options):
    @_options
    class GcsDeletionOptions(_Options):
        todelete_full_path: object = None

    gcs_deletion_options: GcsDeletionOptions = _group(GcsDeletionOptions)


@_options
class MemoryOptions(_Options):
    write_concurrent_bytes: object = None
    read_concurrent_bytes: object = None
    transfer_concurrent_bytes: object = None
    is_prioritized_key_fn: object = None
    serialization_status_callback: object = None


@_options
class SafetensorsOptions(_Options):
    max_over_read_ratio: object = None
    read_chunk_bytes: object = None
