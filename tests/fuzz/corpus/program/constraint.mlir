// An array cut 4 x 2, as P(('a', 'b'), 'c'), is constrained inside the program: once to 2 x 4, as P('a', ('b', 'c')), and once
// to be whole on every device. Each constraint asks for a change of layout that the compiler must make with collectives.
module @constraint {
  sdy.mesh @mesh = <["a"=2, "b"=2, "c"=2]>
  func.func public @main(%x: tensor<8192x8192xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", "b"}, {"c"}]>}) -> (tensor<8192x8192xf32> {jax.result_info = "result[0]"}, tensor<8192x8192xf32> {jax.result_info = "result[1]"}) {
    %0 = stablehlo.add %x, %x : tensor<8192x8192xf32>
    %1 = sdy.sharding_constraint %0 <@mesh, [{"a"}, {"b", "c"}]> : tensor<8192x8192xf32>
    %2 = stablehlo.sine %0 : tensor<8192x8192xf32>
    %3 = sdy.sharding_constraint %2 <@mesh, [{}, {}]> : tensor<8192x8192xf32>
    return %1, %3 : tensor<8192x8192xf32>, tensor<8192x8192xf32>
  }
}
