//! Executable memory: the only owner of compiled code.
//!
//! Guarantees: a function pointer of [`Code`] is valid as long as the `Code` lives, which frees its memory when dropped
//! (Cranelift would leak it); pages are never writable and executable at once; a panic in Cranelift becomes an error of
//! that compilation; memory that the system refuses, or refuses to make executable, is [`Error::OutOfMemory`]. Does
//! not: check what the code does.

#![allow(unsafe_code, reason = "function pointers into compiled code; each block has its proof")]

use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;

use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::{AbiParam, UserFuncName, types};
use cranelift_codegen::isa::OwnedTargetIsa;
use cranelift_codegen::settings::{self, Configurable};
use cranelift_codegen::{CodegenError, Context, isa};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{FuncId, Linkage, Module, ModuleError, default_libcall_names};

use crate::backend::abi::SegmentFn;
use crate::backend::access_order::AccessOrder;
use crate::base::error::{Error, Result};
use crate::base::host::once;
use crate::kernels::CpuLevel;

/// Compiled segments and the memory that holds them.
pub(crate) struct Code {
    module: ManuallyDrop<JITModule>,
    functions: Vec<SegmentFn>,
    orders: Vec<AccessOrder>,
}

// SAFETY: after `finalize_definitions` the module is never used again but to free its memory, and the code it holds
// is immutable and has no state.
unsafe impl Send for Code {}
// SAFETY: as above: shared access only reads function pointers.
unsafe impl Sync for Code {}

impl Code {
    /// The functions, in the order of the segments. Dropping `self` invalidates them.
    pub(crate) fn functions(&self) -> &[SegmentFn] {
        &self.functions
    }

    /// The same code with what is known of the order of each function's accesses.
    pub(super) fn ordered(self, orders: Vec<AccessOrder>) -> Code {
        let mut code = self;
        code.orders = orders;
        code
    }

    /// The order of accesses of each function, if it is known.
    pub(crate) fn orders(&self) -> &[AccessOrder] {
        &self.orders
    }
}

impl Drop for Code {
    fn drop(&mut self) {
        // SAFETY: taken once, here; the functions are reachable only through `self`, so none is running or kept.
        unsafe { ManuallyDrop::take(&mut self.module).free_memory() };
    }
}

/// Whether this machine can run compiled segments. Without SSE4.1, rounding and blends would be library calls.
pub(crate) fn available() -> bool {
    isa(CpuLevel::get()).is_some()
}

/// Cranelift's target for machines of a level; none if this machine has no vectors for it.
fn isa(level: CpuLevel) -> Option<&'static OwnedTargetIsa> {
    static ISAS: [OnceLock<Option<OwnedTargetIsa>>; 3] = [const { OnceLock::new() }; 3];
    once(&ISAS[level as usize], || with_settings(target(level)?)).as_ref()
}

/// A target under the settings of all compiled code. The library's own tests, which compile every op and dtype, and builds
/// with debug assertions verify each function. Elsewhere the verifier would take a third of the instructions of the first
/// call of a program of ten ops.
pub(super) fn with_settings(target: isa::Builder) -> Option<OwnedTargetIsa> {
    let mut flags = settings::builder();
    flags.set("opt_level", "speed").ok()?;
    flags.set("is_pic", "false").ok()?;
    flags.set("enable_verifier", if cfg!(any(test, debug_assertions)) { "true" } else { "false" }).ok()?;
    target.finish(settings::Flags::new(flags)).ok()
}

/// [`isa`], or the error of a machine that has none.
fn supported(level: CpuLevel) -> Result<&'static OwnedTargetIsa> {
    isa(level).ok_or_else(|| internal("this machine is not supported"))
}

/// The instructions of a level, which are those of its kernels. The host's own would be others on each machine.
#[cfg(target_arch = "x86_64")]
fn target(level: CpuLevel) -> Option<isa::Builder> {
    if !std::arch::is_x86_feature_detected!("sse4.2") {
        return None;
    }
    let added: [&[&str]; 3] = [
        &["has_sse3", "has_ssse3", "has_sse41", "has_sse42"],
        &["has_avx", "has_avx2", "has_fma", "has_bmi1", "has_bmi2", "has_lzcnt", "has_popcnt"],
        &["has_avx512f", "has_avx512dq", "has_avx512vl"],
    ];
    let mut target = cranelift_native::builder_with_options(false).ok()?;
    for name in added[..=level as usize].iter().copied().flatten() {
        target.enable(name).ok()?;
    }
    Some(target)
}

#[cfg(not(target_arch = "x86_64"))]
fn target(_: CpuLevel) -> Option<isa::Builder> {
    cranelift_native::builder().ok()
}

/// Runs Cranelift and turns its panics into errors.
fn guarded<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
        Err(Error::Internal(format!("code generation: {}", text.unwrap_or("panic"))))
    })
}

fn internal(e: impl std::fmt::Display) -> Error {
    Error::Internal(format!("code generation: {e}"))
}

/// The error for a module's error: out of memory if the system refused memory, else internal.
fn refused(e: ModuleError) -> Error {
    match e {
        ModuleError::Allocation { .. } => Error::OutOfMemory { bytes: PAGE },
        ModuleError::Compilation(e) => uncompiled(e),
        e => internal(e),
    }
}

/// The error for code that Cranelift does not compile. Of its verifier's, it is the list that names instructions.
fn uncompiled(e: CodegenError) -> Error {
    match e {
        CodegenError::Verifier(errors) => internal(errors.to_string().trim_end()),
        e => internal(e),
    }
}

/// The smallest allocation for code.
const PAGE: usize = 4096;

/// Writes the body of the function with a number.
type Emit<'a> = &'a dyn Fn(usize, &mut FunctionBuilder<'_>) -> Result<()>;

/// Builds `count` functions `(table, n)` with `emit` and makes them executable.
pub(crate) fn compile(count: usize, emit: Emit<'_>) -> Result<Code> {
    finished(false, |module| {
        let (mut context, mut shared) = (module.make_context(), FunctionBuilderContext::new());
        let mut ids = Vec::with_capacity(count);
        for i in 0..count {
            build(module, &mut context, &mut shared, i, emit)?;
            let name = format!("segment{i}");
            let id = module.declare_function(&name, Linkage::Local, &context.func.signature).map_err(internal)?;
            module.define_function(id, &mut context).map_err(refused)?;
            module.clear_context(&mut context);
            ids.push(id);
        }
        Ok(ids)
    })
}

/// Makes machine code executable: functions `(table, n)` in the C calling convention that take any `n` from 1 up.
pub(crate) fn place(functions: &[Vec<u8>]) -> Result<Code> {
    finished(true, |module| {
        let mut signature = module.make_signature();
        signature.params.extend([AbiParam::new(types::I64), AbiParam::new(types::I64)]);
        let mut ids = Vec::with_capacity(functions.len());
        for (i, bytes) in functions.iter().enumerate() {
            let id = module.declare_function(&format!("segment{i}"), Linkage::Local, &signature).map_err(internal)?;
            module.define_function_bytes(id, 64, bytes, &[]).map_err(refused)?;
            ids.push(id);
        }
        Ok(ids)
    })
}

/// Finalizes a module whose functions `define` adds.
fn finished(any_length: bool, define: impl FnOnce(&mut JITModule) -> Result<Vec<FuncId>>) -> Result<Code> {
    let isa = supported(CpuLevel::get())?;
    guarded(|| {
        let mut module = JITModule::new(JITBuilder::with_isa(isa.clone(), default_libcall_names()));
        // Finalization fails only if the system refuses to make pages executable.
        let finish = |_| Error::OutOfMemory { bytes: PAGE };
        let ids = define(&mut module).and_then(|ids| module.finalize_definitions().map_err(finish).map(|()| ids));
        let function = |module: &JITModule, id| {
            let start = module.get_finalized_function(id);
            // SAFETY: `start` is the entry of a finalized function with exactly this signature and calling convention.
            let run = unsafe { std::mem::transmute::<*const u8, unsafe extern "C" fn(*const *mut u8, usize)>(start) };
            SegmentFn { run, any_length }
        };
        match ids {
            Ok(ids) => {
                let functions = ids.into_iter().map(|id| function(&module, id)).collect();
                Ok(Code { module: ManuallyDrop::new(module), functions, orders: Vec::new() })
            }
            Err(e) => {
                // SAFETY: no function of the module has been handed out.
                unsafe { module.free_memory() };
                Err(e)
            }
        }
    })
}

fn build(
    module: &JITModule,
    context: &mut Context,
    shared: &mut FunctionBuilderContext,
    i: usize,
    emit: Emit<'_>,
) -> Result<()> {
    context.func.signature = module.make_signature();
    context.func.signature.params.extend([AbiParam::new(types::I64), AbiParam::new(types::I64)]);
    context.func.name = UserFuncName::user(0, i as u32);
    let mut builder = FunctionBuilder::new(&mut context.func, shared);
    let emitted = emit(i, &mut builder);
    builder.finalize(module.target_config());
    emitted
}

/// The CLIF of the functions, before optimization.
pub(crate) fn clif(count: usize, emit: Emit<'_>) -> Result<Vec<String>> {
    each(supported(CpuLevel::get())?, count, emit, &mut |context| Ok(context.func.display().to_string()))
}

/// Machine code, and the source locations in it: for each its first byte, the byte after it, and the location's number.
pub(crate) struct Located {
    pub(crate) bytes: Vec<u8>,
    pub(crate) locations: Vec<(usize, usize, u32)>,
}

/// The machine code of the functions for machines of a level, for a dump.
pub(crate) fn machine_code(level: CpuLevel, count: usize, emit: Emit<'_>) -> Result<Vec<Located>> {
    let isa = supported(level)?;
    each(isa, count, emit, &mut |context| {
        let code = context.compile(isa.as_ref(), &mut ControlPlane::default());
        let code = code.map_err(|e| uncompiled(e.inner))?;
        let locations = code.buffer.get_srclocs_sorted().iter();
        let locations = locations.map(|l| (l.start as usize, l.end as usize, l.loc.bits())).collect();
        Ok(Located { bytes: code.code_buffer().to_vec(), locations })
    })
}

/// Builds `count` functions with `emit` for any machine and looks at each; none becomes executable.
pub(super) fn each<T>(
    isa: &OwnedTargetIsa,
    count: usize,
    emit: Emit<'_>,
    look: &mut dyn FnMut(&mut Context) -> Result<T>,
) -> Result<Vec<T>> {
    guarded(|| {
        let module = JITModule::new(JITBuilder::with_isa(isa.clone(), default_libcall_names()));
        let (mut context, mut shared) = (module.make_context(), FunctionBuilderContext::new());
        let all = (0..count).map(|i| {
            let seen = build(&module, &mut context, &mut shared, i, emit).and_then(|()| look(&mut context));
            module.clear_context(&mut context);
            seen
        });
        let all = all.collect();
        // SAFETY: nothing was made executable, so no function can be in use.
        unsafe { module.free_memory() };
        all
    })
}
