file(WRITE ${OUTPUT} "__global__ void scale(float* data) { data[threadIdx.x] *= TILE_WIDTH; }\n")
