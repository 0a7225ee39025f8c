// A training step in the style of pmap: one axis, every device computes the loss and the gradient of its part of the batch, and two psums
// add them. spmd_step.mlir is the same step without them: its all-reduces follow from the shardings.
module @pmap_step attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["data"=8]>
  func.func public @main(%w: tensor<64x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, %x: tensor<256x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}, %y: tensor<256x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}) -> (tensor<f32> {jax.result_info = "loss"}, tensor<64x16xf32> {jax.result_info = "w"}) {
    %0:2 = sdy.manual_computation(%w, %x, %y) in_shardings=[<@mesh, [{}, {}]>, <@mesh, [{"data"}, {}]>, <@mesh, [{"data"}, {}]>] out_shardings=[<@mesh, []>, <@mesh, [{}, {}]>] manual_axes={"data"} (%arg0: tensor<64x16xf32>, %arg1: tensor<32x64xf32>, %arg2: tensor<32x16xf32>) {
      %p = stablehlo.dot_general %arg1, %arg0, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<32x64xf32>, tensor<64x16xf32>) -> tensor<32x16xf32>
      %e = stablehlo.subtract %p, %arg2 : tensor<32x16xf32>
      %sq = stablehlo.multiply %e, %e : tensor<32x16xf32>
      %zero = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %l = stablehlo.reduce(%sq init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<32x16xf32>, tensor<f32>) -> tensor<f32>
      %lsum = "stablehlo.all_reduce"(%l) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3, 4, 5, 6, 7]]> : tensor<1x8xi64>, use_global_device_ids}> ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %sum = stablehlo.add %a, %b : tensor<f32>
        stablehlo.return %sum : tensor<f32>
      }) : (tensor<f32>) -> tensor<f32>
      %count = stablehlo.constant dense<4.096000e+03> : tensor<f32>
      %loss = stablehlo.divide %lsum, %count : tensor<f32>
      %g = stablehlo.dot_general %arg1, %e, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<32x64xf32>, tensor<32x16xf32>) -> tensor<64x16xf32>
      %gsum = "stablehlo.all_reduce"(%g) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3, 4, 5, 6, 7]]> : tensor<1x8xi64>, use_global_device_ids}> ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %sum = stablehlo.add %a, %b : tensor<f32>
        stablehlo.return %sum : tensor<f32>
      }) : (tensor<64x16xf32>) -> tensor<64x16xf32>
      %rate = stablehlo.constant dense<2.44140625E-5> : tensor<f32>
      %rates = stablehlo.broadcast_in_dim %rate, dims = [] : (tensor<f32>) -> tensor<64x16xf32>
      %change = stablehlo.multiply %gsum, %rates : tensor<64x16xf32>
      %next = stablehlo.subtract %arg0, %change : tensor<64x16xf32>
      sdy.return %loss, %next : tensor<f32>, tensor<64x16xf32>
    } : (tensor<64x16xf32>, tensor<256x64xf32>, tensor<256x16xf32>) -> (tensor<f32>, tensor<64x16xf32>)
    return %0#0, %0#1 : tensor<f32>, tensor<64x16xf32>
  }
}
