#include "core/cpu/gemm/micro.h"
#include "core/cpu/gemm/pack.h"

namespace longhand::cpu::LONGHAND_ISA {

extern const PanelFormat plain_format{.mr = mr,
                                      .nr = nr,
                                      .k_per_unit = 1,
                                      .granule = 1,
                                      .unit_bytes = 4,
                                      .block_units = 512,
                                      // 8 tiles of 14 rows. With tiles of 6 rows, 112 is rounded
                                      // up to 114 rows, which are 19 tiles.
                                      .block_rows = 112,
                                      .most_task_cols = 2048,
                                      .in_place_f32 = true,
                                      .in_place_bf16_rows = false,
                                      .pack_a = pack_panels<PlainUnits, mr>,
                                      .pack_b = pack_panels<PlainUnits, nr>,
                                      .multiply = multiply<PlainStep>};

extern const PanelFormat rounded_format{.mr = mr,
                                        .nr = nr,
                                        .k_per_unit = 1,
                                        .granule = 1,
                                        .unit_bytes = 4,
                                        .block_units = 512,
                                        // 8 tiles of 14 rows. With tiles of 6 rows, 112 is rounded
                                        // up to 114 rows, which are 19 tiles.
                                        .block_rows = 112,
                                        .most_task_cols = 2048,
                                        .in_place_f32 = false,
                                        .in_place_bf16_rows = false,
                                        .pack_a = pack_panels<RoundedUnits, mr>,
                                        .pack_b = pack_panels<RoundedUnits, nr>,
                                        .multiply = multiply<PlainStep>};

}  // namespace longhand::cpu::LONGHAND_ISA
