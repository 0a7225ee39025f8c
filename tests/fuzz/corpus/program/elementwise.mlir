// sin(x) with x sharded as P('a', 'b') on a mesh of 4 x 2 devices: every device works on its own piece, nothing is sent.
module @elementwise {
  sdy.mesh @mesh = <["a"=4, "b"=2]>
  func.func public @main(%x: tensor<8192x8192xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>}) -> (tensor<8192x8192xf32> {jax.result_info = "result"}) {
    %0 = stablehlo.sine %x : tensor<8192x8192xf32>
    return %0 : tensor<8192x8192xf32>
  }
}
