//! The functions of WASI preview 1 that a Go module imports, without a real system: the clock does not advance, random
//! numbers are zeros, output is dropped, there are no files, arguments and variables, and an exit is a trap.
//!
//! A decision must depend on the question alone, and the host refuses WASI to components that do not request it.

use wasm_encoder::{
    BlockType, CodeSection, EntityType, ExportKind, ExportSection, Function, FunctionSection, ImportSection,
    InstructionSink, MemArg, MemoryType, Module, TypeSection, ValType,
};
use wasmparser::{CompositeInnerType, Parser, Payload, TypeRef};

/// The name under which WASI preview 1 is imported.
pub(super) const MODULE: &str = "wasi_snapshot_preview1";

/// The error number for functions that do not exist (`nosys`).
const NOT_SUPPORTED: i32 = 52;
/// The error number for file descriptors that do not exist (`badf`), which ends a search for open folders.
const BAD_DESCRIPTOR: i32 = 8;
/// The time of all clocks, in nanoseconds: Go refuses to start at zero.
const TIME: i64 = 1;

const OCTETS_4: MemArg = MemArg { offset: 0, align: 2, memory_index: 0 };
const OCTETS_8: MemArg = MemArg { offset: 0, align: 3, memory_index: 0 };

/// A module that exports the functions of WASI that this module imports.
///
/// # Errors
/// The module is malformed.
pub(super) fn module_for(module: &[u8]) -> Result<Vec<u8>, wasmparser::BinaryReaderError> {
    let (mut types, mut functions) = (TypeSection::new(), FunctionSection::new());
    let (mut exports, mut code) = (ExportSection::new(), CodeSection::new());
    for (index, (name, parameters, results)) in (0..).zip(imports(module)?) {
        types.ty().function(parameters.iter().copied(), results.iter().copied());
        functions.function(index);
        exports.export(&name, ExportKind::Func, index);
        code.function(&body(&name, u32::try_from(parameters.len()).unwrap_or(u32::MAX), &results));
    }
    let mut imports = ImportSection::new();
    let memory =
        MemoryType { minimum: 0, maximum: None, memory64: false, shared: false, page_size_log2: None };
    imports.import("env", "memory", EntityType::Memory(memory));
    let mut stub = Module::new();
    stub.section(&types).section(&imports).section(&functions).section(&exports).section(&code);
    Ok(stub.finish())
}

type Signature = (String, Vec<ValType>, Vec<ValType>);

/// The functions that a module imports from WASI.
fn imports(module: &[u8]) -> Result<Vec<Signature>, wasmparser::BinaryReaderError> {
    let (mut types, mut found) = (Vec::new(), Vec::new());
    for payload in Parser::new(0).parse_all(module) {
        match payload? {
            Payload::TypeSection(section) => {
                for group in section {
                    types.extend(group?.into_types().map(|kind| match kind.composite_type.inner {
                        CompositeInnerType::Func(function) => {
                            Some((numbers(function.params()), numbers(function.results())))
                        }
                        _ => None,
                    }));
                }
            }
            Payload::ImportSection(section) => {
                for import in section.into_imports() {
                    let import = import?;
                    let TypeRef::Func(index) = import.ty else { continue };
                    if import.module != MODULE {
                        continue;
                    }
                    // A function may be imported by several of Go's packages.
                    if found.iter().any(|(name, ..): &Signature| name == import.name) {
                        continue;
                    }
                    if let Some(Some((parameters, results))) = types.get(index as usize).cloned() {
                        found.push((import.name.to_owned(), parameters, results));
                    }
                }
            }
            _ => {}
        }
    }
    Ok(found)
}

/// WASI's functions have these two types only.
fn numbers(types: &[wasmparser::ValType]) -> Vec<ValType> {
    let number = |kind: &wasmparser::ValType| match kind {
        wasmparser::ValType::I64 => ValType::I64,
        _ => ValType::I32,
    };
    types.iter().map(number).collect()
}

fn body(name: &str, parameters: u32, results: &[ValType]) -> Function {
    let mut body = Function::new([(2, ValType::I32)]);
    let mut code = body.instructions();
    match name {
        "fd_write" => accept_all(&mut code, parameters),
        "clock_time_get" => {
            code.local_get(2).i64_const(TIME).i64_store(OCTETS_8).i32_const(0);
        }
        "sched_yield" | "args_get" | "args_sizes_get" | "environ_get" | "environ_sizes_get"
        | "random_get" => {
            code.i32_const(0);
        }
        "fd_prestat_get" | "fd_fdstat_get" => {
            code.i32_const(BAD_DESCRIPTOR);
        }
        _ if results == [ValType::I32] => {
            code.i32_const(NOT_SUPPORTED);
        }
        _ => {
            code.unreachable();
        }
    }
    code.end();
    body
}

/// `fd_write(descriptor, vectors, count, written)`: reports that all octets have been written.
fn accept_all(code: &mut InstructionSink<'_>, parameters: u32) {
    let (vectors, count, written) = (1, 2, 3);
    let (index, total) = (parameters, parameters + 1);
    code.block(BlockType::Empty).loop_(BlockType::Empty);
    code.local_get(index).local_get(count).i32_ge_u().br_if(1);
    // A vector is a pointer and a length, of four octets each.
    code.local_get(vectors).local_get(index).i32_const(8).i32_mul().i32_add();
    code.i32_load(MemArg { offset: 4, ..OCTETS_4 });
    code.local_get(total).i32_add().local_set(total);
    code.local_get(index).i32_const(1).i32_add().local_set(index).br(0).end().end();
    code.local_get(written).local_get(total).i32_store(OCTETS_4).i32_const(0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use wasmparser::{Validator, WasmFeatures};

    fn module(imports_of: &[(&str, &str, &[ValType], &[ValType])]) -> Vec<u8> {
        let (mut types, mut imports) = (TypeSection::new(), ImportSection::new());
        for (index, (module, name, parameters, results)) in (0..).zip(imports_of) {
            types.ty().function(parameters.iter().copied(), results.iter().copied());
            imports.import(module, name, EntityType::Function(index));
        }
        let mut module = Module::new();
        module.section(&types).section(&imports);
        module.finish()
    }

    #[test]
    fn the_stub_exports_what_is_imported_of_wasi_with_its_types() {
        use ValType::{I32, I64};
        let imported: &[(&str, &str, &[ValType], &[ValType])] = &[
            (MODULE, "fd_write", &[I32; 4], &[I32]),
            ("switchyard:hooks/log@0.3.0", "write", &[I32; 3], &[]),
            (MODULE, "clock_time_get", &[I32, I64, I32], &[I32]),
            (MODULE, "fd_seek", &[I32, I64, I32, I32], &[I32]),
            (MODULE, "proc_exit", &[I32], &[]),
            (MODULE, "fd_write", &[I32; 4], &[I32]),
        ];
        let stub = module_for(&module(imported)).unwrap();
        Validator::new_with_features(WasmFeatures::all()).validate_all(&stub).unwrap();
        let exported: Vec<String> = Parser::new(0)
            .parse_all(&stub)
            .filter_map(|payload| match payload.unwrap() {
                Payload::ExportSection(exports) => Some(exports),
                _ => None,
            })
            .flatten()
            .map(|export| export.unwrap().name.to_owned())
            .collect();
        assert_eq!(exported, ["fd_write", "clock_time_get", "fd_seek", "proc_exit"]);
    }

    #[test]
    fn a_malformed_module_is_an_error() {
        assert!(module_for(b"\0asm\x01\0\0\0\x02\xff").is_err());
    }
}
