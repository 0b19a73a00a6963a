#pragma once
/// Clebsch: E(3)-equivariant operations, described once, derived symbolically, run fast. The C interface (version 0: may still change).
///
/// Conventions of every function here:
/// - Returns CLEBSCH_OK or a status; `clebsch_last_error()` then gives a message for the calling thread that names the operand, file
///   or argument, what was expected and what came. No exception, abort or exit crosses this interface.
/// - Thread safety: every function may be called from any thread. Handles are immutable after creation, so several threads may use
///   one at a time; destroying a handle while another thread uses it is an error of the caller.
/// - Ownership: functions with a `handle**` result give a handle the caller must `*_destroy` (NULL is allowed there). `char**` results are
///   zero-terminated UTF-8 and are released with `clebsch_free`. `const char*` results belong to the handle and live as long as it.
/// - Structs that may grow start with `size`: set it to sizeof of the struct you compiled with (or use the *_DEFAULTS macros).
/// - Strings are zero-terminated UTF-8. Matrices are row-major. Angles are radians, lengths have the unit of the positions given.
#include <stddef.h>
#include <stdint.h>

#define CLEBSCH_API __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------ status */

typedef enum clebsch_status {
    CLEBSCH_OK = 0,
    CLEBSCH_INVALID_ARGUMENT = 1,  ///< a value, shape, dtype, layout, stride or index that the operation does not accept
    CLEBSCH_PARSE_ERROR = 2,       ///< text or a file that does not follow its grammar
    CLEBSCH_NOT_FOUND = 3,         ///< a file, library or name that is missing
    CLEBSCH_UNSUPPORTED = 4,       ///< valid, but not on this machine or in this build
    CLEBSCH_IO_ERROR = 5,          ///< the operating system refused to read or write
    CLEBSCH_OUT_OF_MEMORY = 6,
    CLEBSCH_INTERNAL_ERROR = 7  ///< a defect of the library; please report it with the message
} clebsch_status;

/// Message of the last failed call of this thread; "" if there was none. Valid until this thread's next failing call.
CLEBSCH_API const char* clebsch_last_error(void);
/// "0.1.0"
CLEBSCH_API const char* clebsch_version(void);
/// Releases text returned through a `char**`.
CLEBSCH_API void clebsch_free(char* text);
/// Processor, instruction sets compiled in / usable / chosen, threads, libraries found or not and why. JSON.
CLEBSCH_API clebsch_status clebsch_info(char** json);
/// Instruction set that plans prepared from now on use: "baseline", "avx2", "avx512", "neon", or "" for the best available.
CLEBSCH_API clebsch_status clebsch_force_instruction_set(const char* name);
/// Threads of the library's own pool, the caller included (0: one per core). The default is CLEBSCH_NUM_THREADS or one per core.
CLEBSCH_API clebsch_status clebsch_set_num_threads(int threads);

/* ------------------------------------------------------------------ algebra */

/// A list of irreducible representations with multiplicities, e.g. "128x0e+64x1o" (e3nn's grammar) or "32x0+16x1" (SO(3)).
typedef struct clebsch_irreps clebsch_irreps;

CLEBSCH_API clebsch_status clebsch_irreps_parse(const char* text, clebsch_irreps** irreps);
CLEBSCH_API void clebsch_irreps_destroy(clebsch_irreps* irreps);
CLEBSCH_API clebsch_status clebsch_irreps_text(const clebsch_irreps* irreps, char** text);
/// Numbers per row; -1 for NULL.
CLEBSCH_API int64_t clebsch_irreps_dim(const clebsch_irreps* irreps);
/// Blocks; 0 for NULL.
CLEBSCH_API size_t clebsch_irreps_count(const clebsch_irreps* irreps);
/// Block `i`: multiplicity, degree l and parity (1 even, -1 odd, 0 for SO(3)). Any result pointer may be NULL.
CLEBSCH_API clebsch_status clebsch_irreps_block(const clebsch_irreps* irreps, size_t i, int64_t* multiplicity, int* degree, int* parity);
/// Stable sort; permutation[old] = new, `clebsch_irreps_count` ints, may be NULL.
CLEBSCH_API clebsch_status clebsch_irreps_sort(const clebsch_irreps* irreps, clebsch_irreps** sorted, int* permutation);
/// Merges adjacent equal irreps and drops multiplicity 0.
CLEBSCH_API clebsch_status clebsch_irreps_simplify(const clebsch_irreps* irreps, clebsch_irreps** simplified);
/// Sorted, then simplified.
CLEBSCH_API clebsch_status clebsch_irreps_regroup(const clebsch_irreps* irreps, clebsch_irreps** regrouped);
/// The list `times` times, one after another.
CLEBSCH_API clebsch_status clebsch_irreps_repeat(const clebsch_irreps* irreps, int64_t times, clebsch_irreps** repeated);
/// The blocks whose irrep is in `keep` (NULL: any), not in `drop` (NULL: none), and of degree at most `lmax` (negative: any).
CLEBSCH_API clebsch_status clebsch_irreps_filter(const clebsch_irreps* irreps, const clebsch_irreps* keep, const clebsch_irreps* drop,
                                                 int lmax, clebsch_irreps** filtered);
/// What two lists couple to: for every block of `a` and every block of `b` the irreps of their product that are in `keep` (NULL: all;
/// then degrees above 12 are an error), ascending, with the product of the multiplicities. Neither sorted nor merged.
CLEBSCH_API clebsch_status clebsch_irreps_product(const clebsch_irreps* a, const clebsch_irreps* b, const clebsch_irreps* keep,
                                                  clebsch_irreps** product);

/// Real coupling coefficients (Wigner 3j), dense, (2 l1 + 1) x (2 l2 + 1) x (2 l3 + 1) doubles. `sign_table`: 5 (e3nn 0.5 and newer)
/// or 4 (e3nn 0.4).
CLEBSCH_API clebsch_status clebsch_wigner_3j(int l1, int l2, int l3, int sign_table, double* coefficients);
/// Matrix of a 3x3 orthogonal matrix on the irrep (degree, parity), (2l+1) x (2l+1) doubles.
CLEBSCH_API clebsch_status clebsch_wigner_d(int degree, int parity, const double rotation[9], double* matrix);
/// Rotation matrices from Euler angles (Y-X-Y) and from a quaternion (w, x, y, z).
CLEBSCH_API clebsch_status clebsch_rotation_from_angles(double alpha, double beta, double gamma, double rotation[9]);
CLEBSCH_API clebsch_status clebsch_rotation_from_quaternion(const double quaternion[4], double rotation[9]);

/* ------------------------------------------------------------------ operations */

/// The description of an operation: a polynomial, or a program of polynomials and unary functions. Immutable.
typedef struct clebsch_operation clebsch_operation;

/// From canonical text (docs/text.md).
CLEBSCH_API clebsch_status clebsch_operation_parse(const char* text, clebsch_operation** operation);
/// From a builder: `name` such as "convolution", `options` lines "key=value" (docs/operations.md; `clebsch_builders` lists them).
CLEBSCH_API clebsch_status clebsch_operation_build(const char* name, const char* options, clebsch_operation** operation);
/// All builders with their options, defaults and help. JSON.
CLEBSCH_API clebsch_status clebsch_builders(char** json);
/// Reverse-mode derivative with respect to the named inputs: takes the inputs and `<output>_cotangent`, gives `<input>_gradient`.
CLEBSCH_API clebsch_status clebsch_operation_vjp(const clebsch_operation* operation, const char* const* inputs, size_t count,
                                                 clebsch_operation** derivative);
/// Forward-mode derivative along `<input>_tangent`, gives `<output>_tangent`.
CLEBSCH_API clebsch_status clebsch_operation_jvp(const clebsch_operation* operation, const char* const* inputs, size_t count,
                                                 clebsch_operation** derivative);
/// The same polynomial with its rows in the order of `index`, which maps from its iteration space (receiver): sums through an index that is
/// not sorted then run as fast as through one that is. Instead of what only `index` led to it takes two indices, `<index>_order` and
/// `<index>_sorted`, which a clebsch_row_order has; its operands are the same.
CLEBSCH_API clebsch_status clebsch_operation_in_order_of(const clebsch_operation* operation, const char* index,
                                                         clebsch_operation** ordered);
CLEBSCH_API void clebsch_operation_destroy(clebsch_operation* operation);
/// Canonical text: parsing it gives the identical operation.
CLEBSCH_API clebsch_status clebsch_operation_text(const clebsch_operation* operation, char** text);
/// 32 hexadecimal digits and a terminating zero.
CLEBSCH_API clebsch_status clebsch_operation_hash(const clebsch_operation* operation, char hash[33]);

typedef enum clebsch_layout { CLEBSCH_MUL_IR = 0, CLEBSCH_IR_MUL = 1 } clebsch_layout;

/// One array of a call, in the order buffers are passed. Strings belong to the operation.
typedef struct clebsch_operand_info {
    size_t size;  ///< sizeof(clebsch_operand_info)
    const char* name;
    const char* segments;  ///< "128x0e+64x1o", plain segments as "1312x(1)", "()" for none
    int is_output;
    int layout;        ///< clebsch_layout
    int64_t row_size;  ///< numbers per row
    int space;         ///< position of its row space; -1: one row, shared by all
} clebsch_operand_info;
#define CLEBSCH_OPERAND_INFO_DEFAULTS \
    { sizeof(clebsch_operand_info), NULL, NULL, 0, 0, 0, 0 }

CLEBSCH_API size_t clebsch_operation_operand_count(const clebsch_operation* operation);
CLEBSCH_API clebsch_status clebsch_operation_operand(const clebsch_operation* operation, size_t i, clebsch_operand_info* info);
/// Row spaces (edge, node, ...): a call gives the number of rows of each, in this order.
CLEBSCH_API size_t clebsch_operation_space_count(const clebsch_operation* operation);
CLEBSCH_API const char* clebsch_operation_space(const clebsch_operation* operation, size_t i);
/// Index arrays (sender, receiver, ...): name, the spaces it maps from and to (positions), and whether it must be sorted.
CLEBSCH_API size_t clebsch_operation_index_count(const clebsch_operation* operation);
CLEBSCH_API clebsch_status clebsch_operation_index(const clebsch_operation* operation, size_t i, const char** name, int* from, int* to,
                                                   int* sorted);

/* ------------------------------------------------------------------ plans */

typedef enum clebsch_dtype { CLEBSCH_FLOAT32 = 0, CLEBSCH_FLOAT64 = 1, CLEBSCH_BFLOAT16 = 2, CLEBSCH_FLOAT16 = 3 } clebsch_dtype;
typedef enum clebsch_index_type { CLEBSCH_INT32 = 0, CLEBSCH_INT64 = 1 } clebsch_index_type;

/// An operation prepared for this machine and for given dtypes. Immutable: many threads may launch one plan at once, each with its own
/// workspace.
typedef struct clebsch_plan clebsch_plan;

typedef struct clebsch_plan_options {
    size_t size;                  ///< sizeof(clebsch_plan_options)
    int dtype;                    ///< clebsch_dtype of every operand, unless `dtypes` says otherwise
    const int* dtypes;            ///< NULL, or one clebsch_dtype per operand. Arithmetic is float64 if any operand is, else float32.
    size_t dtype_count;           ///< length of `dtypes`
    const char* instruction_set;  ///< NULL: the default one
    const char* kernel;           ///< NULL, or a kernel family ("general", ...) to force, for tests
    /// NULL or "cpu": this processor. "cuda", "cuda:1": a GPU; preparing then compiles kernels (or finds them in the cache) and needs the
    /// CUDA driver and NVRTC (docs/gpu.md). All arrays of a launch, its indices and its workspace are then in that GPU's memory.
    const char* device;
    /// On a GPU: 1: every sum has one order, so that two launches give the same bits; sums through indices that are not sorted then take a
    /// pass of their own (docs/gpu.md has what that costs). 0: such sums differ in their last bits. The processor's always have one order.
    int deterministic;
    /// On a GPU, where nothing waits for kernels to tell: 1: a launch that meets a sorted index whose values decrease (values that are no
    /// row aside) leaves NaN in all numbers of its outputs, by one more kernel. 0: clebsch_plan_index_error alone tells. The processor
    /// refuses such a launch.
    int nan_if_unsorted;
} clebsch_plan_options;
#define CLEBSCH_PLAN_OPTIONS_DEFAULTS \
    { sizeof(clebsch_plan_options), CLEBSCH_FLOAT32, NULL, 0, NULL, NULL, NULL, 0, 0 }

/// `options` may be NULL: the defaults.
CLEBSCH_API clebsch_status clebsch_plan_prepare(const clebsch_operation* operation, const clebsch_plan_options* options,
                                                clebsch_plan** plan);
CLEBSCH_API void clebsch_plan_destroy(clebsch_plan* plan);
/// Which kernels take which paths and why; multiply-adds, bytes and the predicted limit of one row of every space for the given peaks
/// (0: not known).
CLEBSCH_API clebsch_status clebsch_plan_explain(const clebsch_plan* plan, double copy_gigabytes_per_second, double fma_gigaflops,
                                                char** text);
/// Scratch bytes of a launch with these rows per space (clebsch_operation_space order) when at most `threads` tasks run at once
/// (0: as many as the library's pool has). Programs keep less where there are many rows: fewer rows may need more. On a GPU: of device
/// memory, at a multiple of 128 bytes; `threads` means nothing.
CLEBSCH_API clebsch_status clebsch_plan_workspace_size(const clebsch_plan* plan, const int64_t* rows, size_t space_count, int threads,
                                                       size_t* bytes);

/// One operand's rows. Any multiple of 4 bytes is a good address (2 bytes for 16-bit numbers); 64-byte aligned rows are fastest, float64
/// arrays that are not at a multiple of 8 bytes are copied around every launch.
typedef struct clebsch_buffer {
    void* data;          ///< may be NULL when there are no rows; inputs are only read
    int dtype;           ///< clebsch_dtype; must be the plan's
    int64_t rows;        ///< must be the rows of its space (1 when shared)
    int64_t row_stride;  ///< elements from row to row; 0: packed
} clebsch_buffer;

/// One index array. -1 masks a row; any other value outside the target space is an error. Any multiple of 4 bytes is a good address.
typedef struct clebsch_index_buffer {
    const void* data;
    int type;       ///< clebsch_index_type
    int64_t count;  ///< must be the rows of the space it maps from
} clebsch_index_buffer;

/// How to run `count` independent tasks: must return when all are done, call each exactly once (any order, any threads), and make
/// progress with the calling thread alone. Results do not depend on it.
typedef struct clebsch_parallel {
    void* context;  ///< passed on to `run`
    int threads;    ///< the largest number of tasks worth running at once, at least 1
    /// Calls task(argument, i) for i = 0 .. count - 1. NULL: all tasks run on the calling thread.
    void (*run)(void* context, int64_t count, void (*task)(void* argument, int64_t i), void* argument);
} clebsch_parallel;

typedef struct clebsch_call {
    size_t size;                    ///< sizeof(clebsch_call)
    const clebsch_buffer* buffers;  ///< one per operand
    size_t buffer_count;
    const clebsch_index_buffer* indices;  ///< one per index
    size_t index_count;
    const int64_t* rows;  ///< rows per space
    size_t space_count;
    void* workspace;  ///< any alignment (on a GPU at a multiple of 128 bytes), at least clebsch_plan_workspace_size bytes; may be NULL when
                      ///< that is 0
    size_t workspace_bytes;
    const clebsch_parallel* parallel;  ///< NULL: the library's pool. Plans for a GPU and the reference make no use of it.
} clebsch_call;
#define CLEBSCH_CALL_DEFAULTS \
    { sizeof(clebsch_call), NULL, 0, NULL, 0, NULL, 0, NULL, 0, NULL }

/// Runs a plan. Outputs are overwritten; rows nothing is added to become zero. Bitwise repeatable for any number of threads. Allocates
/// nothing but what a program needs to run so many rows if its workspace size was not asked for, copies of arrays of 8-byte numbers that
/// are not at a multiple of 8 bytes, lists of more than 16 operands, and the first time in a thread a list of them. Inputs and outputs
/// must not overlap. A plan for a GPU: puts the work on the default stream and does not wait (clebsch_launch_on_stream).
CLEBSCH_API clebsch_status clebsch_launch(const clebsch_plan* plan, const clebsch_call* call);
/// Puts the work of a plan for a GPU on a stream (CUstream, cudaStream_t; NULL: the default one). Does not wait, compile or allocate device
/// memory, so that it can be captured into a CUDA graph; `parallel` means nothing. Values of indices are checked by the kernels: one
/// out of range counts as masked (clebsch_plan_index_error). Sums through indices that are not sorted differ in their last bits from launch
/// to launch unless the plan is deterministic. CLEBSCH_INVALID_ARGUMENT for a plan for the processor.
CLEBSCH_API clebsch_status clebsch_launch_on_stream(const clebsch_plan* plan, const clebsch_call* call, void* stream);
/// Waits for the GPU; `error` becomes 1 if a launch since the last call met an index out of range or a sorted one that decreases, else 0.
/// For the processor, which refuses such a launch, 0.
CLEBSCH_API clebsch_status clebsch_plan_index_error(const clebsch_plan* plan, int* error);
/// Waits until the work on a stream of a GPU ("cuda", "cuda:1") is done; for what other libraries put there.
CLEBSCH_API clebsch_status clebsch_stream_synchronize(const char* device, void* stream);
/// A folder of kernels made by `clebsch prebuild`, in which plans for a GPU prepared from now on look before they compile; it is only read.
CLEBSCH_API clebsch_status clebsch_add_kernel_folder(const char* path);

/// Rows in the order of where an index leads, found once for any number of launches of an operation in the order of that index
/// (clebsch_operation_in_order_of).
typedef struct clebsch_row_order clebsch_row_order;
/// `device`: NULL or "cpu", or where the array and the order are: "cuda", "cuda:1". `target_rows`: of the space the index leads to. Waits
/// for the default stream of a GPU. CLEBSCH_INVALID_ARGUMENT for values other than -1 and rows of that space.
CLEBSCH_API clebsch_status clebsch_row_order_create(const char* device, const clebsch_index_buffer* index, int64_t target_rows,
                                                    clebsch_row_order** order);
/// What to pass as `<index>_order` and `<index>_sorted`; the memory belongs to the order.
CLEBSCH_API clebsch_status clebsch_row_order_indices(const clebsch_row_order* order, clebsch_index_buffer* rows,
                                                     clebsch_index_buffer* sorted);
CLEBSCH_API void clebsch_row_order_destroy(clebsch_row_order* order);

/// The slow evaluator in extended precision that defines what an operation means: float64 buffers only, `workspace` and `parallel` unused.
CLEBSCH_API clebsch_status clebsch_evaluate_reference(const clebsch_operation* operation, const clebsch_call* call);

/* ------------------------------------------------------------------ graphs */

/// A neighbour list as a receiver-sorted graph. Edges run from sender j to receiver i with vector x_j - x_i + shift . cell.
typedef struct clebsch_graph clebsch_graph;

typedef struct clebsch_graph_options {
    size_t size;              ///< sizeof(clebsch_graph_options)
    const double* positions;  ///< atoms x 3
    int64_t atoms;
    const double* cells;       ///< structures x 9 (rows are lattice vectors), or NULL: no periodicity
    const int* periodic;       ///< structures x 3 flags, or NULL: all periodic if `cells` is given
    const int64_t* structure;  ///< structure of each atom, non-decreasing from 0, or NULL: one structure
    int64_t structures;        ///< at least 1
    double cutoff;             ///< edges with length < cutoff
} clebsch_graph_options;
#define CLEBSCH_GRAPH_OPTIONS_DEFAULTS \
    { sizeof(clebsch_graph_options), NULL, 0, NULL, NULL, NULL, 1, 0.0 }

/// Needs the vesin library (pip install vesin); see clebsch_set_vesin_library.
CLEBSCH_API clebsch_status clebsch_graph_build(const clebsch_graph_options* options, clebsch_graph** graph);
/// Path of libvesin.so, of vesin's package folder or of a Python prefix: tried before all other places (docs/graphs.md) unless
/// CLEBSCH_VESIN_LIBRARY is set, when the first graph is built. What is not there is named in that call's error.
CLEBSCH_API clebsch_status clebsch_set_vesin_library(const char* path);
CLEBSCH_API void clebsch_graph_destroy(clebsch_graph* graph);
CLEBSCH_API int64_t clebsch_graph_edge_count(const clebsch_graph* graph);
CLEBSCH_API int64_t clebsch_graph_node_count(const clebsch_graph* graph);
CLEBSCH_API const int64_t* clebsch_graph_sender(const clebsch_graph* graph);      ///< per edge
CLEBSCH_API const int64_t* clebsch_graph_receiver(const clebsch_graph* graph);    ///< per edge, non-decreasing
CLEBSCH_API const int64_t* clebsch_graph_offsets(const clebsch_graph* graph);     ///< nodes + 1: first edge of each receiver
CLEBSCH_API const int64_t* clebsch_graph_transposed(const clebsch_graph* graph);  ///< edges ordered by sender (stable)
CLEBSCH_API const double* clebsch_graph_vectors(const clebsch_graph* graph);      ///< edges x 3
CLEBSCH_API const int32_t* clebsch_graph_shifts(const clebsch_graph* graph);      ///< edges x 3, in lattice vectors
CLEBSCH_API const int64_t* clebsch_graph_structure(const clebsch_graph* graph);   ///< per node

/* ------------------------------------------------------------------ potentials */

/// A pretrained potential, ready to run. Energies are in eV, lengths in Angstrom. One evaluation runs at a time: further threads wait.
typedef struct clebsch_potential clebsch_potential;

typedef struct clebsch_potential_options {
    size_t size;                  ///< sizeof(clebsch_potential_options)
    int dtype;                    ///< CLEBSCH_FLOAT32 or CLEBSCH_FLOAT64: of the model's arithmetic; sums over atoms and edges are float64
    const char* instruction_set;  ///< NULL: the default one
    double skin;  ///< Angstrom, 0 to 20: neighbours this far beyond the cutoff are remembered between evaluations of one structure, so
                  ///< that moving atoms need no new search every time; the same bits as without. 0: search every time
    /// Above 0: radial networks are read from tables that differ from them by at most so much (relative; 1e-7 suits float32, 1e-12
    /// float64) instead of computed, which is faster. 0: computed.
    double table_tolerance;
    /// NULL or "cpu": this processor. "cuda", "cuda:1": a GPU; positions and results stay in the host's memory. The last bits of results
    /// then differ from call to call, unless `deterministic` is 1.
    const char* device;
    int deterministic;  ///< on a GPU, 1: every sum has one order, as in clebsch_plan_options
} clebsch_potential_options;
#define CLEBSCH_POTENTIAL_OPTIONS_DEFAULTS \
    { sizeof(clebsch_potential_options), CLEBSCH_FLOAT32, NULL, 0, 0, NULL, 0 }

/// From a checkpoint: a Nequix .nqx file. `options` may be NULL: the defaults.
CLEBSCH_API clebsch_status clebsch_potential_load(const char* path, const clebsch_potential_options* options,
                                                  clebsch_potential** potential);
CLEBSCH_API void clebsch_potential_destroy(clebsch_potential* potential);
/// Pairs at this distance and beyond have no effect; -1 for NULL.
CLEBSCH_API double clebsch_potential_cutoff(const clebsch_potential* potential);
/// Atomic numbers that the model knows; `count` (may be NULL) becomes how many. They belong to the potential.
CLEBSCH_API const int* clebsch_potential_elements(const clebsch_potential* potential, size_t* count);
/// The steps that run for energies and forces, and the memory they need per atom and edge.
CLEBSCH_API clebsch_status clebsch_potential_explain(const clebsch_potential* potential, char** text);

/// Where results go; any pointer may be NULL.
typedef struct clebsch_potential_result {
    size_t size;          ///< sizeof(clebsch_potential_result)
    double* energy;       ///< structures
    double* atom_energy;  ///< atoms
    double* forces;       ///< atoms x 3
    double* virial;       ///< structures x 9: dE/d(symmetric strain); over the volume it is the stress, positive: tension
} clebsch_potential_result;
#define CLEBSCH_POTENTIAL_RESULT_DEFAULTS \
    { sizeof(clebsch_potential_result), NULL, NULL, NULL, NULL }

/// Energies and derivatives of structures (their `cutoff` is not read: the model has its own). `atomic_numbers`: one per atom. The same
/// bits for any number of threads (clebsch_set_num_threads). Needs the vesin library. An element the model does not know, a position
/// that is not finite and atoms less than 0.001 Angstrom apart are errors that name the atom.
CLEBSCH_API clebsch_status clebsch_potential_evaluate(clebsch_potential* potential, const clebsch_graph_options* structures,
                                                      const int* atomic_numbers, const clebsch_potential_result* result);

#ifdef __cplusplus
}
#endif
