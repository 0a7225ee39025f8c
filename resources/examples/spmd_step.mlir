// The training step of pmap_step.mlir as one program on whole arrays: the batch is split over "data", the weights are whole, and the two
// all-reduces follow from that.
module @spmd_step attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["data"=8]>
  func.func public @main(%w: tensor<64x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, %x: tensor<256x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}, %y: tensor<256x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}) -> (tensor<f32> {jax.result_info = "loss"}, tensor<64x16xf32> {jax.result_info = "w", sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {
    %p = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<256x64xf32>, tensor<64x16xf32>) -> tensor<256x16xf32>
    %e = stablehlo.subtract %p, %y : tensor<256x16xf32>
    %sq = stablehlo.multiply %e, %e : tensor<256x16xf32>
    %zero = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %l = stablehlo.reduce(%sq init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<256x16xf32>, tensor<f32>) -> tensor<f32>
    %count = stablehlo.constant dense<4.096000e+03> : tensor<f32>
    %loss = stablehlo.divide %l, %count : tensor<f32>
    %g = stablehlo.dot_general %x, %e, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<256x64xf32>, tensor<256x16xf32>) -> tensor<64x16xf32>
    %rate = stablehlo.constant dense<2.44140625E-5> : tensor<f32>
    %rates = stablehlo.broadcast_in_dim %rate, dims = [] : (tensor<f32>) -> tensor<64x16xf32>
    %change = stablehlo.multiply %g, %rates : tensor<64x16xf32>
    %next = stablehlo.subtract %w, %change : tensor<64x16xf32>
    return %loss, %next : tensor<f32>, tensor<64x16xf32>
  }
}
