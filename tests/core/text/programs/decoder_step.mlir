module @jit_train_step attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["fsdp"=2, "tensor"=2], device_ids=[0, 2, 1, 3]>
  func.func public @main(%arg0: tensor<64x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"tensor"}, {"fsdp"}]>, tf.aliasing_output = 0 : i32}, %arg1: tensor<4x32x32xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"fsdp"}, {"tensor"}]>}, %arg2: tensor<2x8xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"fsdp"}, {}]>}, %arg3: tensor<2xui32>) -> (tensor<64x32xf32> {jax.result_info = "result[0]['embedding']", sdy.sharding = #sdy.sharding<@mesh, [{"tensor"}, {"fsdp"}]>}, tensor<f32> {jax.result_info = "result[1]", sdy.sharding = #sdy.sharding<@mesh, []>}) {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<2x8xi32>
    %1 = stablehlo.compare LT, %arg2, %0, SIGNED : (tensor<2x8xi32>, tensor<2x8xi32>) -> tensor<2x8xi1>
    %c_0 = stablehlo.constant dense<64> : tensor<i32>
    %2 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<2x8xi32>
    %3 = stablehlo.add %arg2, %2 : tensor<2x8xi32>
    %4 = stablehlo.select %1, %3, %arg2 : tensor<2x8xi1>, tensor<2x8xi32>
    %5 = stablehlo.broadcast_in_dim %4, dims = [0, 1] : (tensor<2x8xi32>) -> tensor<2x8x1xi32>
    %6 = "stablehlo.gather"(%arg0, %5) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>, indices_are_sorted = false, slice_sizes = array<i64: 1, 32>}> : (tensor<64x32xf32>, tensor<2x8x1xi32>) -> tensor<2x8x32xf32>
    %7 = sdy.sharding_constraint %6 <@mesh, [{"fsdp"}, {}, {?}]> : tensor<2x8x32xf32>
    %8 = stablehlo.convert %7 : (tensor<2x8x32xf32>) -> tensor<2x8x32xbf16>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %9:3 = stablehlo.while(%iterArg = %arg1, %iterArg_5 = %c_1, %iterArg_6 = %8) : tensor<4x32x32xbf16>, tensor<i32>, tensor<2x8x32xbf16>
    cond {
      %c_7 = stablehlo.constant dense<4> : tensor<i32>
      %40 = stablehlo.compare LT, %iterArg_5, %c_7, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %40 : tensor<i1>
    } do {
      %c_7 = stablehlo.constant dense<0> : tensor<i32>
      %40 = stablehlo.compare LT, %iterArg_5, %c_7, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %c_8 = stablehlo.constant dense<4> : tensor<i32>
      %41 = stablehlo.add %iterArg_5, %c_8 : tensor<i32>
      %42 = stablehlo.select %40, %41, %iterArg_5 : tensor<i1>, tensor<i32>
      %c_9 = stablehlo.constant dense<0> : tensor<i32>
      %43 = stablehlo.dynamic_slice %iterArg, %42, %c_9, %c_9, sizes = [1, 32, 32] : (tensor<4x32x32xbf16>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x32x32xbf16>
      %44 = stablehlo.reshape %43 : (tensor<1x32x32xbf16>) -> tensor<32x32xbf16>
      %45 = func.call @closed_call(%iterArg_6, %44) : (tensor<2x8x32xbf16>, tensor<32x32xbf16>) -> tensor<2x8x32xbf16>
      %c_10 = stablehlo.constant dense<1> : tensor<i32>
      %46 = stablehlo.add %iterArg_5, %c_10 : tensor<i32>
      stablehlo.return %iterArg, %46, %45 : tensor<4x32x32xbf16>, tensor<i32>, tensor<2x8x32xbf16>
    }
    %10 = stablehlo.convert %9#2 : (tensor<2x8x32xbf16>) -> tensor<2x8x32xf32>
    %11 = chlo.square %10 : tensor<2x8x32xf32> -> tensor<2x8x32xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %12 = stablehlo.reduce(%11 init: %cst) applies stablehlo.add across dimensions = [2] : (tensor<2x8x32xf32>, tensor<f32>) -> tensor<2x8xf32>
    %cst_2 = stablehlo.constant dense<9.99999974E-6> : tensor<f32>
    %13 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<2x8xf32>
    %14 = stablehlo.add %12, %13 : tensor<2x8xf32>
    %15 = stablehlo.rsqrt %14 : tensor<2x8xf32>
    %16 = stablehlo.broadcast_in_dim %15, dims = [0, 1] : (tensor<2x8xf32>) -> tensor<2x8x32xf32>
    %17 = stablehlo.multiply %10, %16 : tensor<2x8x32xf32>
    %18 = stablehlo.slice %17 [0:2, 0:8, 0:16] : (tensor<2x8x32xf32>) -> tensor<2x8x16xf32>
    %19 = stablehlo.slice %17 [0:2, 0:8, 16:32] : (tensor<2x8x32xf32>) -> tensor<2x8x16xf32>
    %20 = stablehlo.negate %19 : tensor<2x8x16xf32>
    %21 = stablehlo.concatenate %20, %18, dim = 2 : (tensor<2x8x16xf32>, tensor<2x8x16xf32>) -> tensor<2x8x32xf32>
    %22 = stablehlo.reduce_precision %21, format = e8m7 : tensor<2x8x32xf32>
    %cst_3 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %23 = stablehlo.reduce(%22 init: %cst_3) applies stablehlo.maximum across dimensions = [0, 1, 2] : (tensor<2x8x32xf32>, tensor<f32>) -> tensor<f32>
    %24:2 = chlo.top_k(%17, k = 2) : tensor<2x8x32xf32> -> (tensor<2x8x2xf32>, tensor<2x8x2xi32>)
    %25:2 = "stablehlo.sort"(%24#0, %24#1) <{dimension = 2 : i64, is_stable = true}> ({
    ^bb0(%arg4: tensor<f32>, %arg5: tensor<f32>, %arg6: tensor<i32>, %arg7: tensor<i32>):
      %40 = stablehlo.compare LT, %arg4, %arg5, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %40 : tensor<i1>
    }) : (tensor<2x8x2xf32>, tensor<2x8x2xi32>) -> (tensor<2x8x2xf32>, tensor<2x8x2xi32>)
    %26 = stablehlo.slice %25#0 [0:2, 0:8, 0:1] : (tensor<2x8x2xf32>) -> tensor<2x8x1xf32>
    %27 = stablehlo.reshape %26 : (tensor<2x8x1xf32>) -> tensor<2x8xf32>
    %output_state, %output = stablehlo.rng_bit_generator %arg3, algorithm = DEFAULT : (tensor<2xui32>) -> (tensor<2xui32>, tensor<2x8xui32>)
    %28 = stablehlo.convert %output : (tensor<2x8xui32>) -> tensor<2x8xf32>
    %29 = stablehlo.multiply %27, %28 : tensor<2x8xf32>
    %cst_4 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %30 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<64x32xf32>
    %31 = "stablehlo.scatter"(%30, %5, %17) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [2], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 2>, unique_indices = false}> ({
    ^bb0(%arg4: tensor<f32>, %arg5: tensor<f32>):
      %40 = stablehlo.add %arg4, %arg5 : tensor<f32>
      stablehlo.return %40 : tensor<f32>
    }) : (tensor<64x32xf32>, tensor<2x8x1xi32>, tensor<2x8x32xf32>) -> tensor<64x32xf32>
    %32:2 = stablehlo.optimization_barrier %31, %29 : tensor<64x32xf32>, tensor<2x8xf32>
    %33 = stablehlo.subtract %arg0, %32#0 : tensor<64x32xf32>
    %c_6 = stablehlo.constant dense<1> : tensor<i32>
    %c_11 = stablehlo.constant dense<[0, 2, 1]> : tensor<3xi32>
    %34 = "stablehlo.case"(%c_6) ({
      stablehlo.return %23 : tensor<f32>
    }, {
      %40 = stablehlo.negate %23 : tensor<f32>
      stablehlo.return %40 : tensor<f32>
    }) : (tensor<i32>) -> tensor<f32>
    %35 = stablehlo.custom_call @annotate_device_placement(%34) {backend_config = "", has_side_effect = true, mhlo.frontend_attributes = {_xla_buffer_placement = "pinned_host"}} : (tensor<f32>) -> tensor<f32>
    %36 = stablehlo.custom_call @cu_lu_pivots_to_permutation(%c_11) {api_version = 4 : i32, mhlo.backend_config = {}, operand_layouts = [dense<0> : tensor<1xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [0], operand_index = 0, operand_tuple_indices = []>], result_layouts = [dense<> : tensor<0xindex>]} : (tensor<3xi32>) -> tensor<3xi32>
    stablehlo.custom_call @check.expect_close(%36, %36) {has_side_effect = true} : (tensor<3xi32>, tensor<3xi32>) -> ()
    %37 = stablehlo.composite "jit_step.double" %35 {composite_attributes = {scale = 2.000000e+00 : f32}, decomposition = @double.impl} : (tensor<f32>) -> tensor<f32>
    return %33, %37 : tensor<64x32xf32>, tensor<f32>
  }
  func.func private @closed_call(%arg0: tensor<2x8x32xbf16>, %arg1: tensor<32x32xbf16>) -> tensor<2x8x32xbf16> {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x8x32xbf16>, tensor<32x32xbf16>) -> tensor<2x8x32xbf16>
    %1 = sdy.sharding_constraint %0 <@mesh, [{"fsdp"}, {}, {"tensor"}]> : tensor<2x8x32xbf16>
    %2 = call @silu(%1) : (tensor<2x8x32xbf16>) -> tensor<2x8x32xbf16>
    %3 = stablehlo.add %arg0, %2 : tensor<2x8x32xbf16>
    return %3 : tensor<2x8x32xbf16>
  }
  func.func private @silu(%arg0: tensor<2x8x32xbf16>) -> tensor<2x8x32xbf16> {
    %0 = stablehlo.negate %arg0 : tensor<2x8x32xbf16>
    %1 = stablehlo.exponential %0 : tensor<2x8x32xbf16>
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<bf16>
    %2 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<bf16>) -> tensor<2x8x32xbf16>
    %3 = stablehlo.add %2, %1 : tensor<2x8x32xbf16>
    %4 = stablehlo.divide %2, %3 : tensor<2x8x32xbf16>
    %5 = stablehlo.multiply %arg0, %4 : tensor<2x8x32xbf16>
    return %5 : tensor<2x8x32xbf16>
  }
  func.func private @double.impl(%arg0: tensor<f32>) -> tensor<f32> {
    %0 = stablehlo.add %arg0, %arg0 : tensor<f32>
    return %0 : tensor<f32>
  }
}
