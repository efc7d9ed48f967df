// VirtualAccelerator: a second device for sessions on a virtual device, so that plans of two
// devices meet every order, too.
//
//   options.make_device = [device] { return device; };
//   options.make_accelerator = [&] { return make_virtual_accelerator(device, library, has_kernel);
//   };
//
// Both devices are the one virtual device: their streams are lanes of one engine, so its adversary
// orders all of them and its watcher sees all of them. Values still go over by copies, and streams
// of the two know each other's events only through the host, as with a GPU. Unlike a GPU's, its
// streams run a kernel's host half when its turn comes and not when it is issued;
// tests/runtime/cuda has a fake that does the other.
//
// Nodes for whose names `has_kernel` returns false find no kernel there; all_but() lets a share of
// them in 0..1 find none, by a hash of the name and the seed.
//
// Ownership: `library` must outlive it. Threads: any.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "runtime/api/library.h"
#include "runtime/execute/accelerator.h"
#include "runtime/virtual/virtual_device.h"

namespace eddy::check {

using HasKernel = std::function<bool(std::string_view node_name)>;
HasKernel all_but(double share, uint64_t seed);

std::shared_ptr<const Accelerator> make_virtual_accelerator(std::shared_ptr<VirtualDevice> device,
                                                            const Library& library,
                                                            HasKernel has_kernel);

}  // namespace eddy::check
