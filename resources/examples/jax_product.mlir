// Rows of y by columns of z, in the precision that JAX takes where nothing is said.
module @product {
  func.func public @main(%y: tensor<8192x8192xf32>, %z: tensor<8192x8192xf32>) -> (tensor<8192x8192xf32>) {
    %0 = stablehlo.dot_general %y, %z, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<8192x8192xf32>, tensor<8192x8192xf32>) -> tensor<8192x8192xf32>
    return %0 : tensor<8192x8192xf32>
  }
}
