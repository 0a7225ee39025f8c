// P('a', None) times P(None, 'b') gives P('a', 'b'): rows meet columns on every device, and nothing is sent.
module @matmul {
  sdy.mesh @mesh = <["a"=4, "b"=2]>
  func.func public @main(%y: tensor<8192x8192xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}, %z: tensor<8192x8192xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"b"}]>}) -> (tensor<8192x8192xf32> {jax.result_info = "result"}) {
    %0 = stablehlo.dot_general %y, %z, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<8192x8192xf32>, tensor<8192x8192xf32>) -> tensor<8192x8192xf32>
    return %0 : tensor<8192x8192xf32>
  }
}
