// A perceptron with one hidden layer and its mean squared error, in the form that jax.jit(loss).lower(...).as_text() prints:
// relu is a function of its own, scalars are broadcast where they are used. The batch is split over "data", the hidden layer
// over "model" (column by row, as Megatron does).
module @jit_loss attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["data"=4, "model"=2]>
  func.func public @main(%arg0: tensor<784x1024xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}]>} loc("params['w1']"), %arg1: tensor<1024xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"model"}]>} loc("params['b1']"), %arg2: tensor<1024x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"model"}, {}]>} loc("params['w2']"), %arg3: tensor<256x784xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>} loc("x"), %arg4: tensor<256x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>} loc("y")) -> (tensor<f32> {jax.result_info = "loss"}) {
    %0 = stablehlo.dot_general %arg3, %arg0, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<256x784xf32>, tensor<784x1024xf32>) -> tensor<256x1024xf32> loc(#loc1)
    %1 = stablehlo.broadcast_in_dim %arg1, dims = [1] : (tensor<1024xf32>) -> tensor<1x1024xf32> loc(#loc1)
    %2 = stablehlo.broadcast_in_dim %1, dims = [0, 1] : (tensor<1x1024xf32>) -> tensor<256x1024xf32> loc(#loc1)
    %3 = stablehlo.add %0, %2 : tensor<256x1024xf32> loc(#loc1)
    %4 = call @relu(%3) : (tensor<256x1024xf32>) -> tensor<256x1024xf32> loc(#loc1)
    %5 = stablehlo.dot_general %4, %arg2, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<256x1024xf32>, tensor<1024x16xf32>) -> tensor<256x16xf32> loc(#loc1)
    %6 = stablehlo.subtract %5, %arg4 : tensor<256x16xf32> loc(#loc1)
    %7 = stablehlo.multiply %6, %6 : tensor<256x16xf32> loc(#loc1)
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32> loc(#loc)
    %8 = stablehlo.reduce(%7 init: %cst) applies stablehlo.add across dimensions = [0, 1] : (tensor<256x16xf32>, tensor<f32>) -> tensor<f32> loc(#loc1)
    %cst_0 = stablehlo.constant dense<4.096000e+03> : tensor<f32> loc(#loc)
    %9 = stablehlo.divide %8, %cst_0 : tensor<f32> loc(#loc1)
    return %9 : tensor<f32> loc(#loc)
  } loc(#loc)
  func.func private @relu(%arg0: tensor<256x1024xf32> loc(unknown)) -> tensor<256x1024xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32> loc(#loc)
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<256x1024xf32> loc(#loc1)
    %1 = stablehlo.maximum %arg0, %0 : tensor<256x1024xf32> loc(#loc1)
    return %1 : tensor<256x1024xf32> loc(#loc)
  } loc(#loc)
} loc(#loc)
#loc = loc(unknown)
#loc1 = loc("jit(loss)/jit(main)/dot_general"(#loc))
