// A matrix product split along the dimension that it sums over (tensor parallel), as shard_map lowers it. Every device has a part of the
// sum, and an all-reduce over "model" adds the parts. Nothing uses "data": all FLOPs are computed four times.
module @jit_tensor_parallel_matmul attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["data"=4, "model"=2]>
  func.func public @main(%x: tensor<128x512xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}]>}, %w: tensor<512x256xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"model"}, {}]>}) -> (tensor<128x256xf32> {jax.result_info = "result"}) {
    %0 = sdy.manual_computation(%x, %w) in_shardings=[<@mesh, [{}, {"model"}]>, <@mesh, [{"model"}, {}]>] out_shardings=[<@mesh, [{}, {}]>] manual_axes={"data", "model"} (%arg0: tensor<128x256xf32>, %arg1: tensor<256x256xf32>) {
      %1 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<128x256xf32>, tensor<256x256xf32>) -> tensor<128x256xf32>
      %2 = "stablehlo.all_reduce"(%1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1], [2, 3], [4, 5], [6, 7]]> : tensor<4x2xi64>, use_global_device_ids}> ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %sum = stablehlo.add %a, %b : tensor<f32>
        stablehlo.return %sum : tensor<f32>
      }) : (tensor<128x256xf32>) -> tensor<128x256xf32>
      sdy.return %2 : tensor<128x256xf32>
    } : (tensor<128x512xf32>, tensor<512x256xf32>) -> tensor<128x256xf32>
    return %0 : tensor<128x256xf32>
  }
}
