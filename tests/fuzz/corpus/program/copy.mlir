// Gives back its argument, through an identity: the layout of the result follows that of the argument.
module @copy {
  sdy.mesh @mesh = <["a"=4, "b"=2]>
  func.func public @main(%x: tensor<8192x8192xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}, {"a"}]>}) -> (tensor<8192x8192xf32> {jax.result_info = "result"}) {
    %0 = stablehlo.reshape %x : (tensor<8192x8192xf32>) -> tensor<8192x8192xf32>
    return %0 : tensor<8192x8192xf32>
  }
}
