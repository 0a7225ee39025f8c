// A reshape regroups a dimension that is split (MW1278).
sdy.mesh @m = <["x"=4]>
func.func @main(%x: tensor<2x12xf32> {sdy.sharding = #sdy.sharding<@m, [{}, {"x"}]>}) -> tensor<4x6xf32> {
  %0 = stablehlo.reshape %x : (tensor<2x12xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}
