module attributes {mw.version = 1 : i64} {
  sdy.mesh @mesh = <["data"=4, "model"=2]>
  func.func public @main(%arg0: tensor<784x512xf32> {mw.annotation = "sdy.sharding of %arg0", mw.name = "params['w1']", sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}]>}, %arg1: tensor<512xf32> {mw.annotation = "sdy.sharding of %arg1", mw.name = "params['b1']", sdy.sharding = #sdy.sharding<@mesh, [{"model"}]>}, %arg2: tensor<512x16xf32> {mw.annotation = "sdy.sharding of %arg2", mw.name = "params['w2']", sdy.sharding = #sdy.sharding<@mesh, [{"model"}, {}]>}, %arg3: tensor<64x784xf32> {mw.annotation = "sdy.sharding of %arg3", mw.name = "x", sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}, %arg4: tensor<64x16xf32> {mw.annotation = "sdy.sharding of %arg4", mw.name = "y", sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}) -> (tensor<f32> {jax.result_info = "loss"}) {
    %0 = stablehlo.dot_general %arg3, %arg0, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"data"}, {"model"}]>]>} : (tensor<64x784xf32>, tensor<784x512xf32>) -> tensor<64x512xf32>
    %1 = stablehlo.broadcast_in_dim %arg1, dims = [1] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"model"}]>]>} : (tensor<512xf32>) -> tensor<1x512xf32>
    %2 = stablehlo.broadcast_in_dim %1, dims = [0, 1] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"data"}, {"model"}]>]>} : (tensor<1x512xf32>) -> tensor<64x512xf32>
    %3 = stablehlo.add %0, %2 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"data"}, {"model"}]>]>} : tensor<64x512xf32>
    %cst = stablehlo.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, []>]>} dense<0.000000e+00> : tensor<f32>
    %4 = stablehlo.broadcast_in_dim %cst, dims = [] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"data"}, {"model"}]>]>} : (tensor<f32>) -> tensor<64x512xf32>
    %5 = stablehlo.maximum %3, %4 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"data"}, {"model"}]>]>} : tensor<64x512xf32>
    %6 = stablehlo.dot_general %5, %arg2, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"data"}, {}], unreduced={"model"}>]>} : (tensor<64x512xf32>, tensor<512x16xf32>) -> tensor<64x16xf32>
    %7 = sdy.all_reduce {"model"} %6 out_sharding=<@mesh, [{"data"}, {}]> {mw.cause = {annotation = "sdy.sharding of %arg0", op = "dot_general", reason = "dot_general sums over a dimension that model splits, so every device holds a partial sum", value = "dot_general(params['w2'], ..)"}} : tensor<64x16xf32>
    %8 = stablehlo.subtract %7, %arg4 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"data"}, {}]>]>} : tensor<64x16xf32>
    %9 = stablehlo.multiply %8, %8 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"data"}, {}]>]>} : tensor<64x16xf32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %10 = stablehlo.reduce(%9 init: %cst_0) applies stablehlo.add across dimensions = [0, 1] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [], unreduced={"data"}>]>} : (tensor<64x16xf32>, tensor<f32>) -> tensor<f32>
    %11 = sdy.all_reduce {"data"} %10 out_sharding=<@mesh, []> {mw.cause = {annotation = "sdy.sharding of %arg4", op = "reduce", reason = "reduce sums over a dimension that data splits, so every device holds a partial sum", value = "reduce(from x)"}} : tensor<f32>
    %cst_1 = stablehlo.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, []>]>} dense<4.096000e+03> : tensor<f32>
    %12 = stablehlo.divide %11, %cst_1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, []>]>} : tensor<f32>
    return %12 : tensor<f32>
  }
}
