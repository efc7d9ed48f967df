// make_virtual_accelerator: further devices for sessions on a virtual device, so that plans of
// several devices meet every order, too.
//
//   options.make_device = [device] { return device; };
//   options.make_devices = {[&] { return make_virtual_accelerator(device, library, has_kernel); }};
//
// All such devices are the one virtual device: their streams are lanes of one engine, so its
// adversary orders all of them and its watcher sees all of them. Values still go over by copies,
// and streams of two devices know each other's events only through the host, as with a GPU. Unlike
// a GPU's, its streams run a kernel's host half when its turn comes and not when it is issued;
// tests/runtime/cuda has a fake that does the other.
//
// Nodes with names that `has_kernel` rejects find no kernel there; all_but() rejects a share of
// them in 0..1, by a hash of the name and the seed.
//
// Ownership: `library` must outlive it. Threads: any.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "runtime/api/library.h"
#include "runtime/device/execution_device.h"
#include "runtime/virtual/virtual_device.h"

namespace eddy::check {

using HasKernel = std::function<bool(std::string_view node_name)>;
HasKernel all_but(double share, uint64_t seed);

ExecutionDevice make_virtual_accelerator(std::shared_ptr<VirtualDevice> device,
                                         const Library& library, HasKernel has_kernel);

}  // namespace eddy::check
