//! Executable memory: the only owner of compiled code.
//!
//! Guarantees: a function pointer of [`Code`] is valid as long as the `Code` lives, and its memory is returned when
//! that is dropped (Cranelift leaks it otherwise); code pages are never writable and executable at once; a panic
//! inside Cranelift becomes an error of this one compile; memory that the system refuses, or refuses to make
//! executable, is [`Error::OutOfMemory`]. Does not: check what the code does; `backend` does.

#![allow(unsafe_code, reason = "function pointers into compiled code; each block has its proof")]

use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;

use cranelift_codegen::ir::{AbiParam, UserFuncName, types};
use cranelift_codegen::isa::OwnedTargetIsa;
use cranelift_codegen::settings::{self, Configurable};
use cranelift_codegen::{Context, isa};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{FuncId, Linkage, Module, ModuleError, default_libcall_names};

use crate::backend::abi::SegmentFn;
use crate::base::error::{Error, Result};
use crate::base::host::once;

/// Compiled segments and the memory that holds them.
pub(crate) struct Code {
    module: ManuallyDrop<JITModule>,
    functions: Vec<SegmentFn>,
}

// SAFETY: after `finalize_definitions` the module is never used again but to free its memory, and the code it holds
// is immutable and has no state.
unsafe impl Send for Code {}
// SAFETY: as above: shared access only reads function pointers.
unsafe impl Sync for Code {}

impl Code {
    /// The functions, in the order of the segments. They must not be called after `self` is dropped.
    pub(crate) fn functions(&self) -> &[SegmentFn] {
        &self.functions
    }
}

impl Drop for Code {
    fn drop(&mut self) {
        // SAFETY: taken once, here; the functions are only reachable through `self`, so none is running or kept.
        unsafe { ManuallyDrop::take(&mut self.module).free_memory() };
    }
}

/// Whether this machine can run compiled segments. Without SSE4.1, rounding and blending would be library calls.
pub(crate) fn available() -> bool {
    isa().is_some()
}

fn isa() -> Option<&'static OwnedTargetIsa> {
    static ISA: OnceLock<Option<OwnedTargetIsa>> = OnceLock::new();
    once(&ISA, || {
        #[cfg(target_arch = "x86_64")]
        if !std::arch::is_x86_feature_detected!("sse4.2") {
            return None;
        }
        let mut flags = settings::builder();
        flags.set("opt_level", "speed").ok()?;
        flags.set("is_pic", "false").ok()?;
        flags.set("enable_verifier", "true").ok()?;
        let host: isa::Builder = cranelift_native::builder().ok()?;
        host.finish(settings::Flags::new(flags)).ok()
    })
    .as_ref()
}

/// Runs Cranelift; its panics become errors.
fn guarded<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
        Err(Error::Internal(format!("code generation: {}", text.unwrap_or("panic"))))
    })
}

fn internal(e: impl std::fmt::Display) -> Error {
    Error::Internal(format!("code generation: {e}"))
}

/// What a module's error is. Memory that the system refuses is no fault of anybody here.
fn refused(e: ModuleError) -> Error {
    match e {
        ModuleError::Allocation { .. } => Error::OutOfMemory { bytes: PAGE },
        e => internal(e),
    }
}

/// The least that code takes.
const PAGE: usize = 4096;

/// Builds `count` functions `(table, n)` with `emit` and makes them executable.
pub(crate) fn compile(count: usize, emit: &dyn Fn(usize, &mut FunctionBuilder<'_>)) -> Result<Code> {
    finished(false, |module| {
        let (mut context, mut shared) = (module.make_context(), FunctionBuilderContext::new());
        let mut ids = Vec::with_capacity(count);
        for i in 0..count {
            build(module, &mut context, &mut shared, i, emit);
            let name = format!("segment{i}");
            let id = module.declare_function(&name, Linkage::Local, &context.func.signature).map_err(internal)?;
            module.define_function(id, &mut context).map_err(refused)?;
            module.clear_context(&mut context);
            ids.push(id);
        }
        Ok(ids)
    })
}

/// Makes finished machine code executable: functions `(table, n)` of the C calling convention that take any `n` from 1
/// up.
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

/// A module with the functions that `define` puts into it.
fn finished(any_length: bool, define: impl FnOnce(&mut JITModule) -> Result<Vec<FuncId>>) -> Result<Code> {
    let isa = isa().ok_or_else(|| internal("this machine is not supported"))?;
    guarded(|| {
        let mut module = JITModule::new(JITBuilder::with_isa(isa.clone(), default_libcall_names()));
        // All that can fail here is that the pages become executable.
        let finish = |_| Error::OutOfMemory { bytes: PAGE };
        let ids = define(&mut module).and_then(|ids| module.finalize_definitions().map_err(finish).map(|()| ids));
        let function = |module: &JITModule, id| {
            let start = module.get_finalized_function(id);
            // SAFETY: `start` is the entry of a finished function with exactly this signature and calling convention.
            let run = unsafe { std::mem::transmute::<*const u8, unsafe extern "C" fn(*const *mut u8, usize)>(start) };
            SegmentFn { run, any_length }
        };
        match ids {
            Ok(ids) => {
                let functions = ids.into_iter().map(|id| function(&module, id)).collect();
                Ok(Code { module: ManuallyDrop::new(module), functions })
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
    emit: &dyn Fn(usize, &mut FunctionBuilder<'_>),
) {
    context.func.signature = module.make_signature();
    context.func.signature.params.extend([AbiParam::new(types::I64), AbiParam::new(types::I64)]);
    context.func.name = UserFuncName::user(0, i as u32);
    let mut builder = FunctionBuilder::new(&mut context.func, shared);
    emit(i, &mut builder);
    builder.finalize(isa_frontend(module));
}

fn isa_frontend(module: &JITModule) -> cranelift_codegen::isa::TargetFrontendConfig {
    module.target_config()
}

/// The text of the functions before optimization.
pub(crate) fn clif_text(count: usize, emit: &dyn Fn(usize, &mut FunctionBuilder<'_>)) -> Result<String> {
    let isa = isa().ok_or_else(|| internal("this machine is not supported"))?;
    guarded(|| {
        let module = JITModule::new(JITBuilder::with_isa(isa.clone(), default_libcall_names()));
        let (mut context, mut shared, mut text) = (module.make_context(), FunctionBuilderContext::new(), String::new());
        for i in 0..count {
            build(&module, &mut context, &mut shared, i, emit);
            text += &context.func.display().to_string();
            module.clear_context(&mut context);
        }
        // SAFETY: nothing was compiled, so no function can be in use.
        unsafe { module.free_memory() };
        Ok(text)
    })
}
