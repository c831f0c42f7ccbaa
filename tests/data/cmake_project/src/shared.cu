// Needs more registers and stack than the kernels that call it from another file.
__device__ float far_away(float value) {
  float rest[TILE_WIDTH * 4];
  for (int k = 0; k < TILE_WIDTH * 4; ++k) rest[k] = __sinf(value * k);
  float sum = value * TILE_WIDTH;
  for (int k = 0; k < int(value); ++k) sum += rest[k % (TILE_WIDTH * 4)] * rest[(k * 7) % (TILE_WIDTH * 4)];
  return sum;
}
