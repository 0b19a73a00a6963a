/* A C program: the header is C, and errors come as messages. */
#include <clebsch/clebsch.h>
#include <stdio.h>
#include <string.h>

int main(void) {
    clebsch_irreps* irreps = NULL;
    if (clebsch_irreps_parse("2x0e+1x1o", &irreps) != CLEBSCH_OK || clebsch_irreps_dim(irreps) != 5) return 1;
    clebsch_irreps_destroy(irreps);
    if (clebsch_irreps_parse("2x0q", &irreps) == CLEBSCH_OK || strstr(clebsch_last_error(), "parity") == NULL) return 2;
    clebsch_graph_options options = CLEBSCH_GRAPH_OPTIONS_DEFAULTS;
    clebsch_graph* graph = NULL;
    if (clebsch_graph_build(&options, &graph) != CLEBSCH_INVALID_ARGUMENT) return 3; /* a cutoff of 0 */
    printf("C, clebsch %s: %s\n", clebsch_version(), clebsch_last_error());
    return 0;
}
