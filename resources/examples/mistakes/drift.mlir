// A parameter comes out of the step in another layout than it went in (MW1273).
sdy.mesh @m = <["a"=2]>
func.func @main(%w: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m, [{"a"}, {}]>, tf.aliasing_output = 0 : i32})
    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m, [{}, {"a"}]>}) {
  %0 = stablehlo.sine %w : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
